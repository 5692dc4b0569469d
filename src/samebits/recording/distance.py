"""How far two tensors are apart, element by element."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from samebits.recording.elements import KNOWN, Elements, as_doubles, is_float, ordered

if TYPE_CHECKING:
    import numpy as np

_CHUNK = 1 << 20  # elements looked at in one go


@dataclass(frozen=True)
class Difference:
    """How far two tensors of one dtype and shape are apart.

    Args:
        elements: how many elements have different bits.
        total: how many elements there are.
        max_ulp: largest distance in units in the last place; None where that means nothing: integers, and
            where an element that differs is a NaN or an infinity.
        max_abs: largest absolute difference; None where an element that differs is a NaN or an infinity.
        first_index: index of the first element that differs.
        values: that element in each run, as text that shows every digit.
    """

    elements: int
    total: int
    max_ulp: int | None
    max_abs: float | None
    first_index: tuple[int, ...] | None = None
    values: tuple[str, str] | None = None


def tensor_difference(a: Any, b: Any) -> Difference:
    """Compare two tensors of the same dtype and shape bit by bit.

    Args:
        a: a strided tensor whose dtype `samebits.recording.elements` knows; of a quantized one the integers
            are compared.
        b: the same of the other run.

    Returns:
        As `element_difference`.

    Raises:
        ValueError: the dtypes or shapes differ, or the dtype is not known.
    """
    if a.dtype != b.dtype or a.shape != b.shape:
        raise ValueError(f"expected two tensors alike, found {a.dtype} {a.shape} and {b.dtype} {b.shape}")
    return element_difference(tensor_elements(a), tensor_elements(b))


def element_difference(a: Elements, b: Elements) -> Difference:
    """Compare the elements of two tensors of the same dtype and shape bit by bit.

    Args:
        a: of one run.
        b: of the other.

    Returns:
        Counts, and the largest distances over the elements whose bits differ. Complex elements are compared
        by their parts.
    """
    parts, elements, first, tally = a.parts, 0, None, _Tally(a.part_dtype)
    for start in range(0, a.bits.size, parts * _CHUNK):
        x, y = a.bits[start : start + parts * _CHUNK], b.bits[start : start + parts * _CHUNK]
        unequal = x != y
        if not unequal.any():
            continue
        rows = unequal.reshape(-1, parts).any(1)
        elements += int(rows.sum())
        if first is None:
            first = start // parts + int(rows.argmax())
        tally.add(x[unequal], y[unequal])
    total = a.bits.size // parts
    if first is None:
        return Difference(0, total, None, None)
    values = (a.text(first), b.text(first))
    return Difference(elements, total, tally.max_ulp, tally.max_abs, _index(first, a.shape), values)


def tensor_elements(tensor: Any) -> Elements:
    """The elements of a strided tensor.

    Raises:
        ValueError: the dtype is not known.
    """
    import torch

    plain = tensor.detach()
    if plain.is_quantized:
        plain = plain.int_repr()
    dtype = str(plain.dtype).removeprefix("torch.")
    if dtype not in KNOWN:
        raise ValueError(f"expected a dtype with known elements, found {dtype}")
    if plain.dtype.is_complex:
        plain = torch.view_as_real(plain.resolve_conj())
    flat = plain.resolve_neg().cpu().contiguous().view(-1)
    sizes = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    return Elements(dtype, tuple(tensor.shape), flat.view(sizes[flat.element_size()]).numpy())


class _Tally:
    """The largest distances seen so far; None for what means nothing.

    Args:
        dtype: of the parts that are compared.
    """

    def __init__(self, dtype: str) -> None:
        self.max_ulp: int | None = None
        self.max_abs: float | None = None
        self._dtype = dtype
        self._meaningless = False

    def add(self, x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> None:
        """Take in the bits of elements, all of which differ."""
        import numpy as np

        if self._meaningless:
            return
        gap = _largest_gap(ordered(x, self._dtype), ordered(y, self._dtype))
        if not is_float(self._dtype):
            self.max_abs = max(self.max_abs or 0.0, float(gap))
            return
        wide_x, wide_y = as_doubles(x, self._dtype), as_doubles(y, self._dtype)
        if not (np.isfinite(wide_x) & np.isfinite(wide_y)).all():
            self.max_ulp, self.max_abs, self._meaningless = None, None, True
            return
        with np.errstate(over="ignore"):
            largest = float(np.abs(wide_x - wide_y).max())
        self.max_abs = max(self.max_abs or 0.0, largest) if math.isfinite(largest) else largest
        self.max_ulp = max(self.max_ulp or 0, gap)


def _largest_gap(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> int:
    """The largest distance between 64-bit integers: it may need 64 bits without a sign."""
    import numpy as np

    gaps = np.maximum(x, y) - np.minimum(x, y)  # wraps around to the right bits
    return int(gaps.view(np.uint64).max())


def _index(number: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    index = []
    for length in reversed(shape):
        number, position = divmod(number, length)
        index.append(position)
    return tuple(reversed(index))
