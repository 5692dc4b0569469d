"""Tensors that a step reads and changes: gradients, buffers, arguments; saved and put back."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# What wrappers of torch put before the names of a model's tensors.
_WRAPPERS = ("module.", "_orig_mod.")
_DEEPEST = 8


def named_parameters(modules: Sequence[torch.nn.Module]) -> list[tuple[str, torch.nn.Parameter]]:
    """Return the parameters of some modules, each once."""
    return _distinct(modules, [list(module.named_parameters()) for module in modules])


def named_buffers(modules: Sequence[torch.nn.Module]) -> list[tuple[str, torch.Tensor]]:
    """Return the buffers of some modules, each once."""
    return _distinct(modules, [list(module.named_buffers()) for module in modules])


def _distinct(
    modules: Sequence[torch.nn.Module], tables: list[list[tuple[str, Any]]]
) -> list[tuple[str, Any]]:
    seen: set[int] = set()
    listed = []
    for number, (module, table) in enumerate(zip(modules, tables, strict=True)):
        prefix = f"{type(module).__name__}[{number}]." if len(modules) > 1 else ""
        for name, tensor in table:
            if id(tensor) not in seen:
                seen.add(id(tensor))
                listed.append((prefix + _bare(name), tensor))
    return listed


def _bare(name: str) -> str:
    while name.startswith(_WRAPPERS):
        name = name.partition(".")[2]
    return name


def copy_of(tensor: torch.Tensor) -> torch.Tensor:
    """Return a copy with the same bits and strides, apart from any graph."""
    return tensor.detach().clone()


def flatten(value: Any, name: str, depth: int = 0) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield the tensors in a value with their names; numbers and arrays come as tensors.

    Args:
        value: tensors, arrays, numbers, in sequences, mappings and dataclasses.
        name: of the value.
        depth: how deep it is nested.
    """
    if isinstance(value, torch.Tensor):
        yield name, value.detach()
    elif isinstance(value, bool):
        yield name, torch.tensor(value, dtype=torch.uint8, device="cpu")
    elif isinstance(value, float) or (isinstance(value, int) and abs(value) < 2**63):
        kind = torch.float64 if isinstance(value, float) else torch.int64
        yield name, torch.tensor(value, dtype=kind, device="cpu")
    elif type(value).__module__ == "numpy" and hasattr(value, "dtype"):
        if value.dtype.kind in "biufc" and value.dtype.isnative:
            yield name, _of_array(value)
    elif depth < _DEEPEST:
        for key, item in _items(value):
            yield from flatten(item, f"{name}{key}", depth + 1)


def _of_array(value: Any) -> torch.Tensor:
    """Return a copy of an array; of a type wider than torch has, two numbers of torch's for each."""
    wide = {"f": "float64", "c": "complex128"}.get(value.dtype.kind, "")
    if not wide or value.dtype.itemsize <= (8 if wide == "float64" else 16):
        return torch.as_tensor(value.copy(order="C"), device="cpu")
    import numpy as np

    with np.errstate(all="ignore"):  # of infinity there is no rest
        high = value.astype(wide)
        rest = (value - high).astype(wide)
    return torch.stack([torch.as_tensor(each, device="cpu") for each in (high, rest)])


def _items(value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, Mapping):
        return [(f"[{key!r}]", value[key]) for key in value]
    if isinstance(value, (list, tuple)):
        return [(f"[{number}]", item) for number, item in enumerate(value)]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [(f".{field.name}", getattr(value, field.name, None)) for field in dataclasses.fields(value)]
    return []


def tensors_in(value: Any, depth: int = 0) -> Iterator[torch.Tensor]:
    """Yield the tensors themselves in a value, each as often as it occurs."""
    if isinstance(value, torch.Tensor):
        yield value
    elif depth < _DEEPEST:
        for _, item in _items(value):
            yield from tensors_in(item, depth + 1)


class Contents:
    """The contents of some tensors at one moment.

    Args:
        tensors: the same objects are written to when they are put back.
    """

    def __init__(self, tensors: Sequence[torch.Tensor]) -> None:
        self._copies = [(tensor, copy_of(tensor)) for tensor in tensors]

    def restore(self) -> None:
        """Put the contents back."""
        with torch.no_grad():
            for tensor, copy in self._copies:
                if tensor.shape == copy.shape:
                    # Not counted as a write: the contents end as the first execution left them, and a
                    # graph that is still alive may hold the tensor.
                    tensor.data.copy_(copy)


class Buffers:
    """The buffers of some modules at one moment: which tensors they are, and what is in them.

    Args:
        modules: the modules.
    """

    def __init__(self, modules: Sequence[torch.nn.Module]) -> None:
        owners = {id(owner): owner for module in modules for owner in module.modules()}
        self._slots = [
            (owner, name, buffer)
            for owner in owners.values()
            for name, buffer in owner.named_buffers(recurse=False, remove_duplicate=False)
        ]
        held = {id(buffer): buffer for _, _, buffer in self._slots}
        self._contents = Contents(list(held.values()))

    def restore(self) -> None:
        """Put the tensors back, and the contents into them."""
        for owner, name, buffer in self._slots:
            if getattr(owner, name, None) is not buffer:
                setattr(owner, name, buffer)
        self._contents.restore()


class Gradients:
    """The `.grad` of some leaf tensors at one moment.

    Args:
        leaves: the tensors.
        copied: keep copies of the contents, to compute from them again; else only the tensors.
    """

    def __init__(self, leaves: Sequence[torch.Tensor], *, copied: bool) -> None:
        self._leaves = leaves
        gradients = [leaf.grad for leaf in leaves]
        self._gradients = [None if g is None else copy_of(g) if copied else g for g in gradients]
        self._copied = copied

    def restore(self) -> None:
        """Put the gradients back: of copies another copy, so that they can be put back once more."""
        for leaf, gradient in zip(self._leaves, self._gradients, strict=True):
            leaf.grad = gradient if gradient is None or not self._copied else copy_of(gradient)
