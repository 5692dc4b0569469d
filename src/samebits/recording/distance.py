"""The bits of a tensor's elements, and how far two tensors are apart; torch is imported only when needed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

_SIGN = -(1 << 63)
_SPREAD = 2654435761  # the golden ratio times 2^32: it puts one element anywhere in each stretch
_IEEE = ("float16", "float32", "float64")
_WHOLE = tuple(f"{sign}int{size}" for sign in ("", "u") for size in (8, 16, 32, 64))
# Bits of exponent and mantissa, and the bias: P. Micikevicius et al., "FP8 formats for deep learning",
# arXiv 2209.05433, and torch/headeronly/util/Float8_*.h in PyTorch 2.9.
_EIGHT_BIT = {
    "float8_e4m3fn": (4, 3, 7),
    "float8_e5m2": (5, 2, 15),
    "float8_e4m3fnuz": (4, 3, 8),
    "float8_e5m2fnuz": (5, 2, 16),
    "float8_e8m0fnu": (8, 0, 127),
}
_COMPLEX = {"complex32": "float16", "complex64": "float32", "complex128": "float64"}
KNOWN = frozenset(("bool", "bfloat16", *_COMPLEX, *_IEEE, *_WHOLE, *_EIGHT_BIT))
"""Names of the dtypes that are understood, as torch spells them."""


@dataclass(frozen=True, eq=False)
class Elements:
    """The elements of a tensor, in the order of its indices.

    Args:
        dtype: one of `KNOWN`.
        shape: of the tensor.
        bits: one-dimensional, signed integers of the elements' size; of complex ones, of both parts in turn.
        whole: shape of the tensor if these are only some of its elements, those of `sampled`; else None.
    """

    dtype: str
    shape: tuple[int, ...]
    bits: np.ndarray[Any, Any]
    whole: tuple[int, ...] | None = None

    @property
    def parts(self) -> int:
        """The number of integers that an element has."""
        return 2 if self.dtype in _COMPLEX else 1

    @property
    def part_dtype(self) -> str:
        """The dtype of a part: of a complex element a float, else the dtype itself."""
        return _COMPLEX.get(self.dtype, self.dtype)

    def index(self, number: int) -> tuple[int, ...]:
        """Return the index of an element in its tensor."""
        if self.whole is None:
            return index_of(number, self.shape)
        return index_of(int(sampled(math.prod(self.whole), self.shape[0])[number]), self.whole)

    def text(self, number: int) -> str:
        """Return one element with every digit, as Python writes it."""
        chosen = self.bits[number * self.parts : (number + 1) * self.parts]
        if self.dtype == "bool":
            return repr(bool(chosen[0]))
        if not is_float(self.part_dtype):
            return repr(as_integers(chosen, self.dtype).tolist()[0])
        values = as_doubles(chosen, self.part_dtype).tolist()
        return repr(complex(*values) if self.parts == 2 else values[0])


def is_float(dtype: str) -> bool:
    """Tell whether elements of a dtype are floats."""
    return dtype.startswith(("float", "bfloat"))


def as_integers(bits: np.ndarray[Any, Any], dtype: str) -> np.ndarray[Any, Any]:
    """Return integers or bools of a dtype from their bits."""
    return bits.view(f"u{bits.dtype.name}" if dtype.startswith(("uint", "bool")) else bits.dtype)


def as_doubles(bits: np.ndarray[Any, Any], dtype: str) -> np.ndarray[Any, Any]:
    """Return floats of a dtype from their bits, exactly, as float64."""
    import numpy as np

    if dtype in _IEEE:
        return bits.view(dtype).astype(np.float64)
    if dtype == "bfloat16":
        return (bits.astype(np.int32) << 16).view(np.float32).astype(np.float64)
    table: np.ndarray[Any, Any] = np.array([_eight_bit_float(value, dtype) for value in range(256)])
    return np.take(table, bits.view(np.uint8))


def ordered(bits: np.ndarray[Any, Any], dtype: str) -> np.ndarray[Any, Any]:
    """Return 64-bit integers in the order of the numbers: neighbouring floats one apart, both zeros 0."""
    import numpy as np

    if dtype == "uint64":
        flipped: np.ndarray[Any, Any] = bits ^ np.int64(_SIGN)
        return flipped
    if not is_float(dtype):
        return as_integers(bits, dtype).astype(np.int64)
    if dtype == "float8_e8m0fnu":  # exponents without a sign
        return bits.view(np.uint8).astype(np.int64)
    lowest = int(np.iinfo(bits.dtype).min)
    wide = bits.astype(np.int64)
    return np.where(wide >= 0, wide, lowest - wide)


def _eight_bit_float(value: int, dtype: str) -> float:
    n_exponent, n_mantissa, bias = _EIGHT_BIT[dtype]
    if dtype == "float8_e8m0fnu":
        return float("nan") if value == 0xFF else 2.0 ** (value - bias)
    if value == 0x80 and dtype.endswith("fnuz"):
        return float("nan")
    size = 1 << n_mantissa
    exponent, mantissa = divmod(value & 0x7F, size)
    if exponent == (1 << n_exponent) - 1:
        if dtype == "float8_e5m2":
            return float("nan") if mantissa else (-1.0) ** (value >> 7) * float("inf")
        if dtype == "float8_e4m3fn" and mantissa == size - 1:
            return float("nan")
    sign = -1.0 if value >> 7 else 1.0
    if exponent == 0:
        return sign * mantissa * 2.0 ** (1 - bias - n_mantissa)
    return sign * (1 + mantissa / size) * 2.0 ** (exponent - bias)


_CHUNK = 1 << 20  # elements looked at in one go


@dataclass(frozen=True)
class Difference:
    """The distance between two tensors of one dtype and shape.

    Args:
        elements: how many elements have different bits.
        total: how many elements there are.
        max_ulp: largest distance in units in the last place; None where that means nothing: integers, and
            where an element that differs is a NaN or an infinity.
        max_abs: largest absolute difference; None where an element that differs is a NaN or an infinity.
        first_index: index of the first element that differs.
        values: that element in each run, as text that shows every digit.
        compared: how many elements were compared, if only so many are kept; None for all.
    """

    elements: int
    total: int
    max_ulp: int | None
    max_abs: float | None
    first_index: tuple[int, ...] | None = None
    values: tuple[str, str] | None = None
    compared: int | None = None


def tensor_difference(a: Any, b: Any) -> Difference:
    """Compare two tensors of the same dtype and shape bit by bit.

    Args:
        a: a strided tensor of one of the dtypes in `KNOWN`; of a quantized one the integers are compared.
        b: the same of the other run.

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
    total = compared = a.bits.size // parts
    if a.whole is not None:
        total = math.prod(a.whole)
    part = None if total == compared else compared
    if first is None:
        return Difference(0, total, None, None, compared=part)
    values = (a.text(first), b.text(first))
    return Difference(elements, total, tally.max_ulp, tally.max_abs, a.index(first), values, part)


def tensor_elements(tensor: Any) -> Elements:
    """Return the elements of a strided tensor.

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
    """Return the largest distance between 64-bit integers: it may need 64 bits without a sign."""
    import numpy as np

    gaps = np.maximum(x, y) - np.minimum(x, y)  # wraps around to the right bits
    return int(gaps.view(np.uint64).max())


def sampled(total: int, most: int) -> np.ndarray[Any, Any]:
    """Return the positions of the elements that are kept of a tensor with more than some number.

    There is one in each of as many stretches of equal length, at a place that varies: a stride could meet the
    same column in every row.

    Args:
        total: how many elements it has.
        most: how many are kept.
    """
    import numpy as np

    numbers = np.arange(most, dtype=np.int64)
    first, after = numbers * total // most, (numbers + 1) * total // most
    places: np.ndarray[Any, Any] = first + ((numbers * _SPREAD % (1 << 32)) * (after - first) >> 32)
    return places


def index_of(number: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the index of the element with that number, counted in the order of the indices."""
    index = []
    for length in reversed(shape):
        number, position = divmod(number, length)
        index.append(position)
    return tuple(reversed(index))
