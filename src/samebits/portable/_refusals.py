"""The errors of portable mode for what has no portable values."""

from __future__ import annotations

from typing import Any

from samebits._runtime.frames import FrameRanks, nearest_site
from samebits.errors import SamebitsError

DOC_PAGE = "docs/reference/portable.md"
_OF_EIGENVALUES = (
    "gives eigenvalues of a matrix that need not be symmetric. LAPACK finds them by a QR iteration whose "
    "steps no specification fixes, so each library has its own bits. torch.linalg.eigh takes symmetric "
    "matrices, and torch.linalg.svd any"
)
_OWN_REASONS = dict.fromkeys(("linalg_eig", "linalg_eigvals", "_linalg_eigvals"), _OF_EIGENVALUES)


def refuse_op(op: Any) -> SamebitsError:
    """Return the error for an op that has no portable kernel and is not proven exact.

    Args:
        op: an `OpOverload`, or a higher-order op.
    """
    namespace = getattr(op, "namespace", "")
    own = _OWN_REASONS.get(str(op).split(".")[1]) if namespace == "aten" else None
    if own is not None:
        reason = own
    elif namespace == "higher_order":
        reason = "is a higher-order op (of compiled code, flex_attention, torch.cond)"
    elif namespace in {"c10d", "_c10d_functional", "_c10d_functional_autograd", "symm_mem", "_dtensor"}:
        reason = "communicates between processes in a way that has no portable values"
    elif namespace not in {"aten", "prims"}:
        reason = f"is an op of {namespace}, which is not proven to give the same bits everywhere"
    else:
        reason = "has no portable kernel and is not proven exact"
    return SamebitsError(
        f"{op}{script_line()} {reason}: use another op there, or run without portable mode ({DOC_PAGE})",
        slug="portable-op",
    )


def refuse_tensor(op: Any, what: str) -> SamebitsError:
    """Return the error for an argument that portable mode has no values for.

    Args:
        op: the op that got it.
        what: what it is, such as `a quantized tensor`.
    """
    return SamebitsError(
        f"{op}{script_line()} got {what}: portable mode takes strided tensors of float, complex, integer and "
        "bool dtypes, all in CPU memory or all on one GPU of NVIDIA; convert it, or run without portable "
        f"mode ({DOC_PAGE})",
        slug="portable-tensor",
    )


def refuse_device(device: Any) -> SamebitsError:
    """Return the error for a tensor in memory that there are no kernels for.

    Args:
        device: of the tensor.
    """
    return SamebitsError(
        f"a tensor on {device} was found{script_line()} where portable mode computes on the CPU and on GPUs "
        f"of NVIDIA: move it with `.cpu()`, or run without portable mode ({DOC_PAGE})",
        slug="portable-tensor",
    )


def refuse_sparse(op: Any) -> SamebitsError:
    """Return the error for an op that has no portable kernel for sparse tensors.

    Args:
        op: the op that got one.
    """
    return SamebitsError(
        f"{op}{script_line()} of a sparse tensor has no portable kernel: make it dense there (`to_dense`), "
        f"or run without portable mode ({DOC_PAGE})",
        slug="portable-tensor",
    )


def refuse_backend(op: Any, backend: str) -> SamebitsError:
    """Return the error for processes that communicate by something else than gloo.

    Args:
        op: an op that communicates.
        backend: what they communicate by; empty where there is nothing for the CPU.
    """
    return SamebitsError(
        f"{op}{script_line()} communicates by {backend or 'nothing that takes tensors in CPU memory'}: "
        "portable mode knows what gloo does, and no other backend; call "
        f"torch.distributed.init_process_group('gloo'), or run without portable mode ({DOC_PAGE})",
        slug="portable-op",
    )


def refuse_reduction(op: Any, reduction: str, dtype: Any) -> SamebitsError:
    """Return the error for a reduction over ranks that is not defined.

    Args:
        op: an op that communicates.
        reduction: such as `AVG`.
        dtype: of the tensors.
    """
    return SamebitsError(
        f"{op}{script_line()} with ReduceOp.{reduction} of {dtype} is not defined in portable mode: use "
        f"another reduction or dtype there, or run without portable mode ({DOC_PAGE})",
        slug="portable-op",
    )


def refuse_complex(op: Any) -> SamebitsError:
    """Return the error for an op that has no portable kernel for complex numbers.

    Args:
        op: the op that got some.
    """
    return SamebitsError(
        f"{op}{script_line()} of complex numbers has no portable kernel: compute there with their parts "
        f"(`torch.view_as_real`), or run without portable mode ({DOC_PAGE})",
        slug="portable-tensor",
    )


def refuse_arguments(op: Any, error: Exception) -> SamebitsError:
    """Return the error for arguments that torch takes and the portable kernel does not.

    Args:
        op: the op that got them.
        error: the error of the kernel.
    """
    return SamebitsError(
        f"{op}{script_line()} got arguments that its portable kernel does not take "
        f"({type(error).__name__}: {error}): call it in another way, or run without portable mode "
        f"({DOC_PAGE})",
        slug="portable-op",
    )


def refuse_use(op: str, what: str) -> SamebitsError:
    """Return the error for a use of an op that its portable kernel does not have.

    Args:
        op: name of the op, without `aten::`.
        what: the use, such as `of complex64 tensors`.
    """
    return SamebitsError(
        f"aten::{op}{script_line()} {what} has no portable kernel: use another op there, "
        "or run without portable mode",
        slug="portable-op",
    )


def refuse_compiled(name: str) -> SamebitsError:
    """Return the error for code that a compiler of torch would run.

    Args:
        name: of the function that was called.
    """
    return SamebitsError(
        f"{name}{script_line()} compiles code, whose bits may differ on other machines: call the "
        f"function without compiling it, or run without portable mode ({DOC_PAGE})",
        slug="portable-compiled",
    )


def refuse_program(name: str) -> SamebitsError:
    """Return the error for a program that a compiler of torch made, and that calls no op.

    Args:
        name: of the method that runs it.
    """
    return SamebitsError(
        f"{name}{script_line()} runs compiled code, whose bits may differ on other machines: call the "
        f"function that it was compiled from, or run without portable mode ({DOC_PAGE})",
        slug="portable-compiled",
    )


def script_line() -> str:
    """Return ` at file:line` of the script, for a message; empty when none of its code is on the stack."""
    site = nearest_site(FrameRanks())
    return f" at {site.file}:{site.line}" if site else ""
