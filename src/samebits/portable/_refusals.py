"""What portable mode says of an op that it has no portable values for."""

from __future__ import annotations

from typing import Any

from samebits._runtime.frames import FrameRanks, nearest_site
from samebits.errors import SamebitsError

DOC_PAGE = "docs/reference/portable.md"


def refuse_op(op: Any) -> SamebitsError:
    """The error for an op that has no portable kernel and is not proven exact.

    Args:
        op: an `OpOverload`, or a higher-order op.
    """
    namespace = getattr(op, "namespace", "")
    if namespace == "higher_order":
        reason = "is a higher-order op (of compiled code, flex_attention, torch.cond)"
    elif namespace == "c10d":
        reason = "communicates between processes, which is not portable yet"
    elif namespace not in {"aten", "prims"}:
        reason = f"is an op of {namespace}, whose bits nobody has proven to be the same everywhere"
    else:
        reason = "has no portable kernel and is not proven exact"
    return SamebitsError(
        f"{op}{place()} {reason}: use another op there, or run without portable mode ({DOC_PAGE})",
        slug="portable-op",
    )


def refuse_tensor(op: Any, found: str) -> SamebitsError:
    """The error for an argument that portable mode has no values for.

    Args:
        op: what got it.
        found: what it is.
    """
    return SamebitsError(
        f"{op}{place()} got {found}: portable mode has strided tensors of float, integer and bool dtypes in "
        f"CPU memory; convert it, or run without portable mode ({DOC_PAGE})",
        slug="portable-tensor",
    )


def refuse_sparse(op: Any) -> SamebitsError:
    """The error for an op that has no portable kernel for sparse tensors.

    Args:
        op: what got one.
    """
    return SamebitsError(
        f"{op}{place()} of a sparse tensor has no portable kernel: make it dense there (`to_dense`), "
        f"or run without portable mode ({DOC_PAGE})",
        slug="portable-tensor",
    )


def refuse_arguments(op: Any, error: Exception) -> SamebitsError:
    """The error for arguments that torch takes and the portable kernel does not.

    Args:
        op: what got them.
        error: what the kernel said.
    """
    return SamebitsError(
        f"{op}{place()} got arguments that its portable kernel does not take "
        f"({type(error).__name__}: {error}): call it in another way, or run without portable mode "
        f"({DOC_PAGE})",
        slug="portable-op",
    )


def refuse_compiled(name: str) -> SamebitsError:
    """The error for code that a compiler of torch would run.

    Args:
        name: what was called.
    """
    return SamebitsError(
        f"{name}{place()} makes code of its own, whose bits are not the same everywhere: call the function "
        f"without compiling it, or run without portable mode ({DOC_PAGE})",
        slug="portable-compiled",
    )


def place() -> str:
    """` at file:line` of the script, for a message; empty when none of its code is on the stack."""
    site = nearest_site(FrameRanks())
    return f" at {site.file}:{site.line}" if site else ""
