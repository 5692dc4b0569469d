"""The arguments of an op: tensors apart from a canonical text of everything else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from samebits.recording.recorder import is_tensor

# Their repr is short, exact and the same in every run.
_EXACT = (int, float, bool, str, complex, type(None))


def flatten_arguments(values: Iterable[Any], tensors: list[Any], others: list[Any]) -> None:
    """Append the tensors in `values` to `tensors`, and what describes the rest to `others`."""
    for value in values:
        kind = type(value)
        if kind in _EXACT:
            others.append(value)
        elif is_tensor(value):
            tensors.append(value)
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


def argument_text(others: list[Any]) -> str:
    """Canonical text of arguments that are no tensors, with no address in it."""
    return repr(others)[1:-1] if others else ""


class _Named:
    """Stands for a value whose repr could hold an address."""

    __slots__ = ("_text",)

    def __init__(self, value: Any) -> None:
        module = type(value).__module__
        self._text = (
            str(value) if module == "torch" and type(value).__name__ in _PLAIN else type(value).__name__
        )

    def __repr__(self) -> str:
        return self._text


_PLAIN = ("dtype", "device", "layout", "memory_format", "SymInt")
