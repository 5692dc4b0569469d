"""Copies of what an op writes to, taken before it runs: the same bits, layout, overlap and alignment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from samebits.recording.probes.arguments import flatten_arguments, flatten_outputs
from samebits.recording.probes.op_specs import WORKSPACES
from samebits.recording.recorder import is_tensor

if TYPE_CHECKING:
    from samebits.torch_schema import OpTraits

# Kernels may take another way through memory that begins elsewhere in a vector or cache line. torch's own
# memory on the CPU begins at multiples of this (c10/core/alignment.h, 2.13.0).
_ALIGNMENT = 64

Call = tuple[tuple[Any, ...], dict[str, Any]]
"""Positional and keyword arguments."""


class CannotCopy(Exception):  # noqa: N818 - it says why, and never reaches the user as an error
    """A tensor of which no copy can be made that an op would treat in the same way."""


def written_arguments(traits: OpTraits, call: Call) -> list[Any]:
    """The tensors that an op writes to, in the order of its arguments."""
    args, kwargs = call
    written = [args[position] for position in traits.positions if position < len(args)]
    written += [kwargs[name] for name in traits.keywords if name in kwargs]
    tensors: list[Any] = []
    flatten_arguments(written, tensors, [])
    return tensors


def results_of(traits: OpTraits, outcome: Any, call: Call) -> list[Any]:
    """The tensors that an op returned, scratch memory aside, and others that it wrote to."""
    scratch = WORKSPACES.get(traits.base, ())
    outputs = [output for index, output in enumerate(flatten_outputs(outcome)) if index not in scratch]
    listed = {id(tensor) for tensor in outputs}
    return outputs + [tensor for tensor in written_arguments(traits, call) if id(tensor) not in listed]


class Copies:
    """The arguments of a call as they were before it.

    Tensors that the op only reads are given as they are. Tensors that share memory with one that is written
    become tensors that share one copy of that memory, of just the part that they span.

    Args:
        torch: the module.
        traits: of the op.
        call: its arguments, before it runs.

    Raises:
        CannotCopy: see there.
    """

    def __init__(self, torch: Any, traits: OpTraits, call: Call) -> None:
        self._torch = torch
        self._call = call
        self._spans: list[_Span] = []
        self._others: list[tuple[Any, Any]] = []
        written = written_arguments(traits, call)
        if written:
            everything: list[Any] = []
            flatten_arguments((*call[0], *call[1].values()), everything, [])
            self._copy(written, everything)

    def _copy(self, written: list[Any], everything: list[Any]) -> None:
        places: dict[tuple[object, int], list[Any]] = {}
        for tensor in written:
            if _has_plain_memory(tensor):
                places.setdefault(_place(tensor), [])
            elif all(tensor is not known for known, _ in self._others):
                self._others.append((tensor, tensor.clone()))
        seen: set[int] = set()
        for tensor in everything:
            if id(tensor) not in seen and _has_plain_memory(tensor) and _place(tensor) in places:
                seen.add(id(tensor))
                places[_place(tensor)].append(tensor)
        for tensors in places.values():
            if len(tensors) == 1 and _is_alone(tensors[0]):
                self._others.append((tensors[0], tensors[0].clone()))
            else:
                self._spans.append(_Span(self._torch, tensors))

    def restored(self, *, last: bool) -> Call:
        """Arguments for one more call.

        Args:
            last: no further ones will be asked for, so the copy itself may be written to.
        """
        if not self._spans and not self._others:
            return self._call
        new: dict[int, Any] = {}
        for span in self._spans:
            new.update(span.tensors(last=last))
        for tensor, copy in self._others:
            new[id(tensor)] = copy if last else copy.clone()
        args, kwargs = self._call
        return tuple(_replaced(value, new) for value in args), {
            name: _replaced(value, new) for name, value in kwargs.items()
        }


class _Span:
    """The part of one storage that some tensors cover."""

    def __init__(self, torch: Any, tensors: list[Any]) -> None:
        self._torch = torch
        self._tensors = tensors
        first = tensors[0]
        if any(tensor.is_neg() for tensor in tensors):
            raise CannotCopy("it writes to memory that is read with its sign changed")
        bounds = [_bounds(tensor) for tensor in tensors]
        self._low = min(low for low, _ in bounds)
        high = max(high for _, high in bounds)
        storage = first.untyped_storage()
        length = max(0, min(high, storage.nbytes()) - self._low)
        address = storage.data_ptr() + self._low
        self._pad = address % _ALIGNMENT
        if any((self._pad - self._low) % tensor.element_size() for tensor in tensors):
            self._pad = self._low % 16  # the memory came from elsewhere and is not aligned to its elements
        memory = torch.empty(0, dtype=torch.uint8, device=first.device)
        memory.set_(storage, self._low, (length,), (1,))
        self._bytes = torch.empty(self._pad + length, dtype=torch.uint8, device=first.device)
        self._bytes[self._pad :].copy_(memory)

    def tensors(self, *, last: bool) -> dict[int, Any]:
        """The tensors on one copy of the memory, by the identity of the original."""
        memory = self._bytes if last else self._bytes.clone()
        return {id(tensor): self._on(memory, tensor) for tensor in self._tensors}

    def _on(self, memory: Any, tensor: Any) -> Any:
        size = tensor.element_size()
        offset = (self._pad - self._low) // size + tensor.storage_offset()
        copy = self._torch.empty(0, dtype=tensor.dtype, device=tensor.device)
        copy.set_(memory.untyped_storage(), offset, tensor.size(), tensor.stride())
        return copy.conj() if tensor.is_conj() else copy


def _has_plain_memory(tensor: Any) -> bool:
    return str(tensor.layout) == "torch.strided" and not tensor.is_quantized and not tensor.is_nested


def _is_alone(tensor: Any) -> bool:
    """Whether a clone is such a copy: no gaps, no other order, and memory as aligned as torch's own."""
    return (
        tensor.is_contiguous()
        and not tensor.data_ptr() % _ALIGNMENT
        and not tensor.is_conj()
        and not tensor.is_neg()
        and tensor.numel() > 0
    )


def _place(tensor: Any) -> tuple[object, int]:
    """Which storage; empty ones are each on their own."""
    base = tensor.untyped_storage().data_ptr()
    return (tensor.device, base) if base else (f"empty {id(tensor)}", 0)


def _bounds(tensor: Any) -> tuple[int, int]:
    """Offsets in bytes of the first and behind the last byte of a tensor in its storage."""
    size = tensor.element_size()
    low = tensor.storage_offset() * size
    if not tensor.numel():
        return low, low
    reach = sum((n - 1) * stride for n, stride in zip(tensor.size(), tensor.stride(), strict=True))
    return low, low + (reach + 1) * size


def _replaced(value: Any, new: dict[int, Any]) -> Any:
    if is_tensor(value):
        return new.get(id(value), value)
    if type(value) in (list, tuple):
        return type(value)(_replaced(item, new) for item in value)
    return value
