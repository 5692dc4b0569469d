"""Digests of the tensors of one op, with what else recording asks of each tensor, in one pass over them."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

from samebits.digest.tensors import (
    _CONJUGABLE,
    _HEADERS,
    _NEGATABLE,
    _PLAIN_TYPES,
    _STRIDED,
    digest_many,
    run_once,
)

if TYPE_CHECKING:
    import torch


def observe(tensors: list[torch.Tensor]) -> tuple[bytes, tuple[object, ...], list[int]]:
    """Digests, a key and storage addresses of tensors.

    The hot path of op-level recording, hence one loop without calls of our own.

    Returns:
        16 bytes each; a hashable value that is equal for equal dtypes and shapes; where each storage
        begins, 0 for those without contents or without a storage in CPU memory.

    Raises:
        SamebitsError: if one of them cannot be read.
    """
    words: list[int] = []
    kinds: list[int] = []
    bases: list[int] = []
    add = words.append
    try:
        for t in tensors:
            if type(t) not in _PLAIN_TYPES or not t.is_cpu:
                return _observe_any(tensors)
            header = _HEADERS[t.dtype]
            if header & _NEGATABLE and (t.is_neg() or (header & _CONJUGABLE and t.is_conj())):
                return _observe_any(tensors)
            shape, address, offset = t.shape, t.data_ptr(), int(t.storage_offset())
            bases.append(address - (offset << (header >> 8 & 15)) if offset else address)
            add(address)
            header |= len(shape) << 20
            kinds.append(header)
            kinds += shape
            if t.is_contiguous():
                add(header)
                words += shape
            else:
                add(header | _STRIDED)
                words += shape
                words += t.stride()
        digests = run_once(array("Q", words), len(tensors))
    except (KeyError, RuntimeError):  # quantized; sparse, nested, inside a transform: no address or no sizes
        digests = None
    return _observe_any(tensors) if digests is None else (digests, tuple(kinds), bases)


def _observe_any(tensors: list[torch.Tensor]) -> tuple[bytes, tuple[object, ...], list[int]]:
    return digest_many(tensors), tuple(map(_kind, tensors)), list(map(_base, tensors))


def _kind(tensor: torch.Tensor) -> tuple[torch.dtype, tuple[int, ...]]:
    try:
        return tensor.dtype, tuple(tensor.shape)
    except RuntimeError:  # nested tensors have no shape
        return tensor.dtype, ()


def _base(tensor: torch.Tensor) -> int:
    try:
        return tensor.untyped_storage().data_ptr()
    except (NotImplementedError, RuntimeError):
        return 0
