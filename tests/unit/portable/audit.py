"""Handlers may call nothing of torch but exact ops."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from samebits._torch.core import is_virtual
from samebits._torch.dispatch_modes import dispatch_mode_class
from samebits._torch.portable import can_decompose, is_faking, overload_name, schema_name
from samebits.portable._exact import SPARSE, base_name, exactness_of, moves_complex
from samebits.portable._plans import Plans
from samebits.portable._scan import has_complex
from samebits.portable._sparse import has_floats
from samebits.portable.coverage import CollectingMode

if TYPE_CHECKING:
    import pytest

# Ops that choose one of their inputs, and are exact but for a zero's sign (NEON and AVX differ there).
_CHOICES = frozenset(
    {"clamp", "clamp_max", "clamp_min", "fmax", "fmin", "hardtanh", "maximum", "minimum", "relu"}
)
# Exact for the values that a handler knows to be there: it sees to zeros, NaNs, ranges and duplicates itself.
_EXACT_WITH_CARE = (
    _CHOICES
    | SPARSE
    | {
        "_index_put_impl",
        "_to_copy",
        "_unique2",
        "amax",
        "amin",
        "aminmax",
        "argmax",
        "argmin",
        "copy",
        "copysign",
        "cummax",
        "cummin",
        "frexp",
        "index_copy",
        "random",
        "index_put",
        "max",
        "min",
        "signbit",
        "sort",
        "sparse_mask",
        "unique_consecutive",
        "unique_dim",
    }
)


class InexactOpError(BaseException):
    """A handler called an op of torch whose bits are not the same everywhere.

    Portable mode tells exceptions of a handler as torch would; this one must pass.
    """


class AuditMode(dispatch_mode_class()):  # type: ignore[misc]
    """Raises for an op of torch that is not exact: entered around a handler, it sees what that calls."""

    def __init__(self) -> None:
        super().__init__()
        self.paused = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Called by torch for each op."""
        kwargs = kwargs or {}
        if self.paused or _is_known(func, args, kwargs):
            return func(*args, **kwargs)
        if can_decompose(func):
            with self:
                return func.decompose(*args, **kwargs)
        raise InexactOpError(
            f"a portable handler calls {func}, which is not exact ({_described(args)}): "
            "use an exact op or a kernel of samebits.portable"
        )


class Unaudited:
    """A context that is entered for portable mode to run an op, once more, inside a handler.

    Args:
        audit: the audit of the handler, which does not look meanwhile.
        again: what the handler was given to enter.
    """

    def __init__(self, audit: AuditMode, again: Any) -> None:
        self._audit, self._again = audit, again

    def __enter__(self) -> None:
        self._audit.paused += 1
        self._again.__enter__()

    def __exit__(self, *error: object) -> None:
        self._again.__exit__(*error)
        self._audit.paused -= 1


def audit_portable_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    """Watch what each handler calls, until `monkeypatch` is undone."""
    run = Plans.run

    def audited(plans: Plans, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any], again: Any) -> Any:
        if isinstance(again, CollectingMode):
            return run(plans, op, args, kwargs, again)
        with AuditMode() as audit:
            return run(plans, op, args, kwargs, Unaudited(audit, again))

    monkeypatch.setattr(Plans, "run", audited)


def _is_known(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    if func.namespace in {"profiler", "prim"} or _computes_nothing(func, args) or is_faking():
        return True
    if has_complex((*args, *kwargs.values())):
        return moves_complex(func) or _of_parts(func)
    if base_name(func) in _EXACT_WITH_CARE or overload_name(func) == "dtype":
        return not _accumulates(func, args, kwargs) and not _draws_floats(func, args)
    tensors = [value for value in args if isinstance(value, torch.Tensor)]
    is_asked = bool(tensors) and all(tensor.numel() == 0 for tensor in tensors)  # what torch says of the rest
    if is_asked or any(is_virtual(tensor) for tensor in tensors):
        return True
    exactness = exactness_of(func)
    if exactness.floats and (exactness.condition is None or exactness.condition(args, kwargs)):
        return True
    sparse = any(tensor.layout != torch.strided for tensor in tensors)
    return (exactness.integers or sparse) and not has_floats((*args, *kwargs.values()))


def _of_parts(func: Any) -> bool:
    """Whether it converts complex numbers part by part, or sees their memory as something else."""
    return base_name(func) in {"_to_copy", "copy"} or overload_name(func) == "dtype"


def _computes_nothing(func: Any, args: tuple[Any, ...]) -> bool:
    """Whether it stores a generator's raw numbers, or only checks its arguments: there is no element."""
    if schema_name(func) == "aten::random_" and args[1:] == (-(2**63), None):
        return True
    return bool(args) and isinstance(args[0], torch.Tensor) and args[0].shape == (0,)


def _accumulates(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether an `index_put` adds."""
    if "index_put" not in schema_name(func) or not has_floats(args):
        return False
    return bool(args[3] if len(args) > 3 else kwargs.get("accumulate", False))


def _draws_floats(func: Any, args: tuple[Any, ...]) -> bool:
    """Integers come from the generator one by one."""
    return schema_name(func) == "aten::random_" and has_floats(args[:1])


def _described(args: tuple[Any, ...]) -> str:
    return ", ".join(str(value.dtype) for value in args if isinstance(value, torch.Tensor)) or "no tensors"
