"""The bits of a tensor's elements, and what numbers they are; without torch, whose import takes seconds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

_SIGN = -(1 << 63)
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
    """

    dtype: str
    shape: tuple[int, ...]
    bits: np.ndarray[Any, Any]

    @property
    def parts(self) -> int:
        """How many integers an element has."""
        return 2 if self.dtype in _COMPLEX else 1

    @property
    def part_dtype(self) -> str:
        """The dtype of a part: of a complex element a float, else the dtype itself."""
        return _COMPLEX.get(self.dtype, self.dtype)

    def text(self, number: int) -> str:
        """One element with every digit, as Python writes it."""
        chosen = self.bits[number * self.parts : (number + 1) * self.parts]
        if self.dtype == "bool":
            return repr(bool(chosen[0]))
        if not is_float(self.part_dtype):
            return repr(as_integers(chosen, self.dtype).tolist()[0])
        values = as_doubles(chosen, self.part_dtype).tolist()
        return repr(complex(*values) if self.parts == 2 else values[0])


def is_float(dtype: str) -> bool:
    """Whether elements of that dtype are floats."""
    return dtype.startswith(("float", "bfloat"))


def as_integers(bits: np.ndarray[Any, Any], dtype: str) -> np.ndarray[Any, Any]:
    """Integers or bools of that dtype from their bits."""
    return bits.view(f"u{bits.dtype.name}" if dtype.startswith(("uint", "bool")) else bits.dtype)


def as_doubles(bits: np.ndarray[Any, Any], dtype: str) -> np.ndarray[Any, Any]:
    """Floats of that dtype from their bits, exactly, as float64."""
    import numpy as np

    if dtype in _IEEE:
        return bits.view(dtype).astype(np.float64)
    if dtype == "bfloat16":
        return (bits.astype(np.int32) << 16).view(np.float32).astype(np.float64)
    table: np.ndarray[Any, Any] = np.array([_eight_bit_float(value, dtype) for value in range(256)])
    return np.take(table, bits.view(np.uint8))


def ordered(bits: np.ndarray[Any, Any], dtype: str) -> np.ndarray[Any, Any]:
    """64-bit integers in the order of the numbers: of floats one apart for neighbours, both zeros 0."""
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
