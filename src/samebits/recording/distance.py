"""How far two tensors are apart, element by element."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

_CHUNK = 1 << 20  # elements looked at in one go
_SIGN = -(1 << 63)
_MASK = (1 << 64) - 1


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
        a: a strided tensor of any dtype; of a quantized one the integers are compared.
        b: the same of the other run.

    Returns:
        Counts, and the largest distances over the elements whose bits differ. Complex elements are compared
        by their parts.

    Raises:
        ValueError: the dtypes or shapes differ.
    """
    if a.dtype != b.dtype or a.shape != b.shape:
        raise ValueError(f"expected two tensors alike, found {a.dtype} {a.shape} and {b.dtype} {b.shape}")
    flat_a, flat_b = _flat(a), _flat(b)
    parts = 2 if a.dtype.is_complex else 1
    elements, first, tally = 0, None, _Tally()
    for start in range(0, flat_a.numel(), parts * _CHUNK):
        x, y = flat_a[start : start + parts * _CHUNK], flat_b[start : start + parts * _CHUNK]
        unequal = _bits(x) != _bits(y)
        if not bool(unequal.any()):
            continue
        rows = unequal.view(-1, parts).any(1)
        elements += int(rows.sum())
        if first is None:
            first = start // parts + int(rows.nonzero()[0])
        tally.add(x[unequal], y[unequal])
    index, values = (None, None) if first is None else _example(a, b, first)
    return Difference(elements, int(a.numel()), tally.max_ulp, tally.max_abs, index, values)


class _Tally:
    """The largest distances seen so far; None for what means nothing."""

    def __init__(self) -> None:
        self.max_ulp: int | None = None
        self.max_abs: float | None = None
        self._meaningless = False

    def add(self, x: Any, y: Any) -> None:
        """Take in elements, all of which differ."""
        import torch

        if self._meaningless:
            return
        if not x.dtype.is_floating_point:
            self.max_abs = max(self.max_abs or 0.0, float(_integer_distance(x, y)))
            return
        wide_x, wide_y = x.to(torch.float64), y.to(torch.float64)
        apart = (wide_x - wide_y).abs()
        if not bool((wide_x.isfinite() & wide_y.isfinite()).all()):
            self.max_ulp, self.max_abs, self._meaningless = None, None, True
            return
        largest = float(apart.max())
        self.max_abs = max(self.max_abs or 0.0, largest) if math.isfinite(largest) else largest
        self.max_ulp = max(self.max_ulp or 0, _largest_gap(_ordered(x), _ordered(y)))


def _flat(tensor: Any) -> Any:
    import torch

    plain = tensor.detach()
    if plain.is_quantized:
        plain = plain.int_repr()
    if plain.dtype.is_complex:
        plain = torch.view_as_real(plain.resolve_conj())
    return plain.resolve_neg().contiguous().view(-1)


def _bits(values: Any) -> Any:
    """The elements as signed integers of their size."""
    import torch

    sizes = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    return values.view(sizes[values.element_size()])


def _ordered(values: Any) -> Any:
    """Floats as integers in the same order, one apart for neighbours; both zeros are 0."""
    import torch

    if str(values.dtype) == "torch.float8_e8m0fnu":  # exponents without a sign
        return _bits(values).to(torch.int64) & 0xFF
    bits = _bits(values)
    lowest = torch.iinfo(bits.dtype).min
    wide = bits.to(torch.int64)
    return torch.where(wide >= 0, wide, lowest - wide)


def _integer_distance(x: Any, y: Any) -> int:
    import torch

    if x.dtype == torch.uint64:
        return _largest_gap(_bits(x) ^ _SIGN, _bits(y) ^ _SIGN)
    return _largest_gap(x.to(torch.int64), y.to(torch.int64))


def _largest_gap(x: Any, y: Any) -> int:
    """The largest distance between 64-bit integers: it may need 64 bits without a sign."""
    import torch

    gaps = torch.maximum(x, y) - torch.minimum(x, y)  # wraps around to the right bits
    return (int((gaps ^ _SIGN).max()) ^ _SIGN) & _MASK


def _example(a: Any, b: Any, first: int) -> tuple[tuple[int, ...], tuple[str, str]]:
    index = []
    for length in reversed(a.shape):
        first, position = divmod(first, length)
        index.append(position)
    place = tuple(reversed(index))
    return place, (_text(a.detach()[place]), _text(b.detach()[place]))


def _text(element: Any) -> str:
    return repr((element.int_repr() if element.is_quantized else element).item())
