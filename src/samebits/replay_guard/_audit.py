"""A look at one execution of a step: it must write only to what the guard can put back.

Example: a hook adds each gradient to a tensor of its own. The guard does not know that tensor, so one more
execution would add the gradient twice.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import torch

from samebits._runtime.compiled_code import compiled_code_runs_eagerly
from samebits._torch.core import mutated_arguments
from samebits._torch.dispatch_modes import dispatch_mode_class
from samebits._torch.higher_order import is_higher_order, run_by_its_ops

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# Their result is memory from outside of the dispatcher: NumPy's, Python's.
_ENTRIES = frozenset({"aten::lift_fresh", "aten::lift", "aten::detach", "aten::alias", "aten::set_"})


class Audit:
    """Sees which memory is written that existed before and is not known.

    Args:
        known: tensors that are put back.
    """

    def __init__(self, known: Iterable[torch.Tensor]) -> None:
        self._known = {address for tensor in known if (address := _address(tensor))}
        self._made: set[int] = set()
        self.foreign: list[str] = []
        self._mode: Any = _mode_class()(self)

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Return a context in which every op of this thread is seen, those of compiled code too."""
        with compiled_code_runs_eagerly(), self._mode:
            yield

    def see(self, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any], outcome: Any) -> None:
        """Note what an op wrote to and what it made."""
        read = {_address(tensor) for tensor in _tensors((*args, *kwargs.values()))}
        positions, names = mutated_arguments(op)
        written = [args[position] for position in positions if position < len(args)]
        written += [kwargs[name] for name in names if name in kwargs]
        for tensor in _tensors(written):
            address = _address(tensor)
            if address and address not in self._known and address not in self._made:
                self.foreign.append(f"{op.name().partition('.')[0]} on {list(tensor.shape)}")
        entry = op.name().partition(".")[0] in _ENTRIES
        made = {_address(tensor) for tensor in _tensors((outcome,))}
        self._made |= made if entry and "lift" in op.name() else made - read


def _mode_class() -> type[Any]:
    class AuditMode(dispatch_mode_class()):  # type: ignore[misc]
        """Hands every op to the audit."""

        def __init__(self, audit: Audit) -> None:
            super().__init__()
            self.audit = audit

        def __torch_dispatch__(self, op: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if is_higher_order(op):
                return run_by_its_ops(op, args, kwargs or {}, self)
            outcome = op(*args, **(kwargs or {}))
            self.audit.see(op, args, kwargs or {}, outcome)
            return outcome

    return AuditMode


def _tensors(values: Iterable[Any]) -> list[torch.Tensor]:
    found: list[torch.Tensor] = []
    for value in values:
        if isinstance(value, torch.Tensor):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found += _tensors(value)
    return found


def _address(tensor: torch.Tensor) -> int:
    try:
        return tensor.untyped_storage().data_ptr()
    except (NotImplementedError, RuntimeError):  # sparse, or a class that keeps its memory to itself
        return 0
