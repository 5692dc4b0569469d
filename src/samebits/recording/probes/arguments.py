"""The arguments of an op: tensors apart from a canonical text of everything else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from samebits.recording.recorder import is_tensor

if TYPE_CHECKING:
    from samebits.recording.probes.op_specs import OpSpec

# Their repr is short, exact and the same in every run.
_EXACT = frozenset((int, float, bool, str, complex, type(None)))
# The same holds for these types of torch, by their `str`.
_PLAIN = frozenset(("dtype", "device", "layout", "memory_format", "SymInt"))


def flatten_arguments(values: Iterable[Any], tensors: list[Any], others: list[Any]) -> None:
    """Append the tensors in `values` to `tensors`, and what describes the rest to `others`."""
    for value in values:
        kind = type(value)
        if hasattr(kind, "untyped_storage"):  # `is_tensor`, without its call
            tensors.append(value)
        elif kind in _EXACT:
            others.append(value)
        elif kind is list or kind is tuple:
            flatten_arguments(value, tensors, others)
        else:
            others.append(_Named(value))


def flatten_outputs(outcome: Any) -> list[Any]:
    """The tensors that an op returned."""
    if is_tensor(outcome):
        return [outcome]
    if isinstance(outcome, (list, tuple)):
        return [tensor for item in outcome for tensor in flatten_outputs(item)]
    if isinstance(outcome, Mapping):
        return [tensor for item in outcome.values() for tensor in flatten_outputs(item)]
    return []


def written_tensors(spec: OpSpec, outcome: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    """The tensors that an op returned, and those that it wrote to without returning them."""
    outputs = flatten_outputs(outcome)
    if spec.positions == (0,) and not spec.keywords and outputs and outputs[0] is args[0]:
        return outputs
    listed = {id(tensor) for tensor in outputs}
    written = [args[position] for position in spec.positions if position < len(args)]
    written += [kwargs[name] for name in spec.keywords if name in kwargs]
    mutated: list[Any] = []
    flatten_arguments(written, mutated, [])
    return outputs + [tensor for tensor in mutated if id(tensor) not in listed]


class _Named:
    """Stands for a value whose repr could hold an address."""

    __slots__ = ("_text",)

    def __init__(self, value: Any) -> None:
        kind = type(value)
        self._text = str(value) if kind.__module__ == "torch" and kind.__name__ in _PLAIN else kind.__name__

    def __repr__(self) -> str:
        return self._text
