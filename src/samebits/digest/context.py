"""What a wrapper subclass keeps beside its tensors, as text: the second value of `__tensor_flatten__`."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import torch

_AS_SHOWN = (
    type(None), bool, int, complex, str, bytes,
    torch.dtype, torch.device, torch.layout, torch.memory_format,
)  # fmt: skip
_DEEPEST = 8
NO_CONTEXT = "NoneType None"


def context_of(tensor: Any) -> tuple[str, tuple[torch.Tensor, ...]]:
    """The context of a wrapper subclass as text, and the tensors in it.

    The same value gives the same text in every process. An object of a class that has no defined contents (a
    device mesh, a function) counts by the name of its class only. The context is that of the detached tensor:
    whether a gradient is wanted is no part of a value.

    Args:
        tensor: has `__tensor_flatten__`.
    """
    found: list[torch.Tensor] = []
    return _text(_flattened(tensor)[1], found, 0), tuple(found)


def _flattened(tensor: Any) -> tuple[Any, Any]:
    if tensor.requires_grad:
        try:
            detached = tensor.detach()
        except (RuntimeError, NotImplementedError, TypeError):  # the subclass has no such op
            detached = tensor
        if hasattr(detached, "__tensor_flatten__"):
            tensor = detached
    names, context = tensor.__tensor_flatten__()
    return names, context


def _text(value: Any, found: list[torch.Tensor], depth: int) -> str:
    if isinstance(value, torch.Tensor):
        found.append(value)
        return f"tensor {len(found)}"
    if isinstance(value, _AS_SHOWN) and type(value).__repr__ is not object.__repr__:
        return f"{type(value).__name__} {value!r}"
    if isinstance(value, float):
        return f"float {value.hex()}"
    if depth < _DEEPEST:
        inside = _container(value, found, depth + 1)
        if inside is not None:
            return f"{type(value).__name__} {inside}"
    return type(value).__qualname__


def _container(value: Any, found: list[torch.Tensor], depth: int) -> str | None:
    """The contents of a container; None for anything else."""
    if isinstance(value, Mapping):
        entries = [(_text(key, found, depth), _text(value[key], found, depth)) for key in value]
        return f"{sorted(entries)}"
    if isinstance(value, AbstractSet):
        return f"{sorted(_text(item, found, depth) for item in value)}"
    if isinstance(value, Sequence):
        return f"{[_text(item, found, depth) for item in value]}"
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = dataclasses.fields(value)
        return f"{[(field.name, _text(getattr(value, field.name, None), found, depth)) for field in fields]}"
    return None
