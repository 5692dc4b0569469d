"""The elements of a tensor that a record keeps for a comparison: all, or as many as fit, spread over it.

A kept tensor is a safetensors file of integers. `value` has the bits of the elements in the order of their
indices, of complex ones as pairs. If these are only
some of them, `flat` has the digest of all elements as one row, and `unordered` a sum that does not depend on
their order.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

from samebits.recording.distance import KNOWN, Elements, sampled

if TYPE_CHECKING:
    from samebits.records.events import TensorInfo

MOST_ELEMENTS = 1 << 18
_CHUNK = 1 << 20
# The constants of MurmurHash3's finalizer, as signed numbers (A. Appleby, public domain).
_MIX = (-49064778989728563, -4265267296055464877)
_SIZES = {"bool": 1, "bfloat16": 2, "complex32": 2, "complex64": 4, "complex128": 8}


@dataclass(frozen=True, eq=False)
class Kept:
    """The kept elements of a tensor.

    Args:
        elements: in the order of their indices, as one row.
        total: how many elements the tensor has.
        flat: digest of all elements as one row; empty if all are kept.
        unordered: of all elements in any order; empty if all are kept.
    """

    elements: Elements
    total: int
    flat: bytes = b""
    unordered: bytes = b""

    @property
    def is_whole(self) -> bool:
        """True if all elements are kept."""
        return self.elements.shape[0] == self.total

    def index(self, number: int) -> int:
        """Return the position in the tensor of a kept element."""
        return number if self.is_whole else int(sampled(self.total, MOST_ELEMENTS)[number])


def pack(tensor: Any, digest: Any) -> bytes | None:
    """Return the kept elements as a safetensors file; None if a tensor has none that can be kept.

    Args:
        tensor: any tensor with data. Of a quantized one the integers are kept; a sparse one is kept in full
            if it is small.
        digest: gives 16 bytes for each of some tensors.
    """
    import torch

    if tensor.is_nested:
        return None
    plain = tensor.detach()
    if plain.is_quantized:
        plain = plain.int_repr()
    if plain.layout != torch.strided:
        if plain.numel() > MOST_ELEMENTS:
            return None
        plain = plain.to_dense()
    plain = plain.resolve_conj().resolve_neg()
    name = str(plain.dtype).removeprefix("torch.")
    if name not in KNOWN:
        return None
    flat = plain.reshape(-1)
    if flat.numel() <= MOST_ELEMENTS:
        return _saved({"value": _as_bits(flat)})
    places = torch.from_numpy(sampled(flat.numel(), MOST_ELEMENTS)).to(flat.device)
    parts = {
        "value": _as_bits(flat.index_select(0, places)),
        "flat": torch.frombuffer(bytearray(digest([flat])), dtype=torch.int8),
        "unordered": unordered(_as_bits(flat)),
    }
    return _saved(parts)


def _saved(parts: dict[str, Any]) -> bytes:
    """Return integers as a safetensors file, not by the library's code for torch: it could be compiled."""
    from safetensors.numpy import save

    return bytes(save({name: part.cpu().contiguous().numpy() for name, part in parts.items()}))


def _as_bits(flat: Any) -> Any:
    """Return elements as integers of their size; of complex ones as pairs."""
    import torch

    if flat.is_complex():
        flat = torch.view_as_real(flat)
    sizes = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    return flat.view(sizes[flat.element_size()])


def unordered(bits: Any) -> Any:
    """Return a number of 64 bits that follows from the elements and not from their order.

    It is the sum of a hash of each element. Two tensors with other elements have the same sum by chance only.

    Args:
        bits: one row of integers, or of pairs.

    Returns:
        an int64 tensor of one element.
    """
    import torch

    total = torch.zeros((), dtype=torch.int64, device=bits.device)
    for chunk in bits.split(_CHUNK):
        mixed = torch.zeros(len(chunk), dtype=torch.int64, device=bits.device)
        for part in chunk.reshape(len(chunk), -1).unbind(1):
            mixed = (mixed * 31) ^ part.to(torch.int64)
            for factor in _MIX:
                mixed = (mixed ^ (mixed >> 33)) * factor
            mixed ^= mixed >> 33
        total += mixed.sum()
    return total.reshape(1)


def unpack(data: bytes, info: TensorInfo) -> Kept | None:
    """Return what `pack` wrote; None where a stranger's record does not fit its own description.

    Args:
        data: a safetensors file.
        info: of the tensor.
    """
    import numpy as np
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        parts = {name: part.tobytes() for name, part in load(data).items()}
    except (SafetensorError, KeyError, ValueError):
        return None
    dtype = plain_dtype(info.dtype)
    if dtype not in KNOWN:
        return None
    total = prod(info.shape)
    n_parts, size = (2 if dtype.startswith("complex") else 1), _size(dtype)
    kept = min(total, MOST_ELEMENTS)
    value = parts.get("value")
    if value is None or len(value) != kept * n_parts * size:
        return None
    bits = np.frombuffer(value, dtype=f"<i{size}")
    return Kept(Elements(dtype, (kept,), bits), total, parts.get("flat", b""), parts.get("unordered", b""))


def rounded(elements: Elements, dtype: str) -> Elements:
    """Return floats or complex numbers as torch rounds them to another dtype of their kind.

    Args:
        elements: any number.
        dtype: the new dtype.
    """
    import numpy as np
    import torch

    if elements.dtype == dtype:
        return elements
    to = Elements(dtype, (), np.empty(0)).part_dtype
    parts = torch.from_numpy(np.array(elements.bits)).view(getattr(torch, elements.part_dtype))
    return Elements(dtype, elements.shape, _as_bits(parts.to(getattr(torch, to))).numpy())


def plain_dtype(dtype: str) -> str:
    """Return the dtype of the integers of a quantized tensor; any other dtype as it is."""
    return {"qint8": "int8", "quint8": "uint8", "qint32": "int32"}.get(dtype, dtype)


def _size(dtype: str) -> int:
    if dtype in _SIZES:
        return _SIZES[dtype]
    digits = "".join(c for c in dtype.partition("_")[0] if c.isdigit())
    return int(digits) // 8 if digits else 1
