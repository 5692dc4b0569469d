"""Fourier transforms ("Fourier transforms" in docs/reference/portable-numerics.md)."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np
import torch

from samebits.portable._tensors import as_array
from samebits.portable.backends import backend_of
from samebits.portable.kernels.complex_numbers import parts, product
from samebits.portable.kernels.elementwise import unary

if TYPE_CHECKING:
    from torch import Tensor

    from samebits.portable.reference.fma import Array

MOST_RADIX = 31
"""The greatest prime that is a radix of its own; as in native/portable/fft.h."""

_HALF_PI = float.fromhex("0x1.921fb54442d18p+0")


class Kind(IntEnum):
    """The transforms, in the order of native/portable/fft.h."""

    COMPLEX = 0
    FROM_REAL = 1
    TO_REAL = 2


@dataclass(frozen=True)
class Transform:
    """What is transformed along the middle one of the sizes (outer, n, inner).

    Args:
        kind: between which numbers.
        inverse: the sign of the exponent is positive.
        sizes: n counts the real numbers, where there are some.
        scale: multiplies the result.
    """

    kind: Kind
    inverse: bool
    sizes: tuple[int, int, int]
    scale: float


@dataclass(frozen=True)
class Stages:
    """The stages of a complex transform, and their factors, as native/portable/parameters.h says.

    All are on the device of what is transformed.

    Args:
        radices: of each stage.
        table: the factors of all stages.
        first: those of the first stage once more, in another order.
    """

    radices: Tensor
    table: Tensor
    first: Tensor


def transform_complex(x: Tensor, dim: int, scale: float, *, inverse: bool) -> Tensor:
    """Return the transform of complex numbers along a dimension, times `scale`.

    Args:
        x: complex64 or complex128, not lazily conjugated.
        dim: not negative.
        scale: multiplies the result.
        inverse: the sign of the exponent is positive.
    """
    x = x.contiguous()
    n = x.shape[dim]
    if _is_by_convolution(x, n):
        return _by_convolution(x, dim, scale, inverse=inverse)
    return _run(x, torch.empty_like(x), Transform(Kind.COMPLEX, inverse, _sizes(x, dim, n), scale))


def transform_reals(x: Tensor, dim: int, scale: float) -> Tensor:
    """Return the first half of the transform of real numbers along a dimension, and the middle.

    Args:
        x: float32 or float64.
        dim: not negative.
        scale: multiplies the result.
    """
    x = x.contiguous()
    n = x.shape[dim]
    if _is_by_convolution(x, n):
        whole = _by_convolution(torch.complex(x, torch.zeros_like(x)), dim, scale, inverse=False)
        return whole.narrow(dim, 0, n // 2 + 1).contiguous()
    shape = (*x.shape[:dim], n // 2 + 1, *x.shape[dim + 1 :])
    out = x.new_empty(shape, dtype=x.dtype.to_complex())
    return _run(x, out, Transform(Kind.FROM_REAL, False, _sizes(x, dim, n), scale))


def transform_to_reals(x: Tensor, dim: int, n: int, scale: float) -> Tensor:
    """Return the n real numbers whose spectrum begins as given, by the inverse transform.

    Args:
        x: complex64 or complex128, n // 2 + 1 along the dimension, not lazily conjugated.
        dim: not negative.
        n: how many numbers.
        scale: multiplies the result.
    """
    x = x.contiguous()
    if _is_by_convolution(x, n):
        return torch.view_as_real(_by_convolution(_mirrored(x, dim, n), dim, scale, inverse=True))[..., 0]
    out = x.new_empty((*x.shape[:dim], n, *x.shape[dim + 1 :]), dtype=x.dtype.to_real())
    return _run(x, out, Transform(Kind.TO_REAL, True, _sizes(x, dim, n), scale))


def _is_by_convolution(x: Tensor, n: int) -> bool:
    return bool(x.numel()) and greatest_prime(n) > MOST_RADIX


def _sizes(x: Tensor, dim: int, n: int) -> tuple[int, int, int]:
    return math.prod(x.shape[:dim]), n, math.prod(x.shape[dim + 1 :])


def _run(x: Tensor, out: Tensor, transform: Transform) -> Tensor:
    if not out.numel():
        return out
    real, n = out.dtype if transform.kind is Kind.TO_REAL else out.dtype.to_real(), transform.sizes[1]
    half = transform.kind is not Kind.COMPLEX and n % 2 == 0
    device = x.device
    stages = stages_of(n // 2 if half else n, real, device)
    backend_of(x).fourier(x, out, transform, stages, first_turns(n, real, device) if half else None)
    return out


@functools.lru_cache(1024)
def greatest_prime(n: int) -> int:
    """Return the greatest prime factor; 1 if there is none."""
    most, divisor = 1, 2
    while divisor * divisor <= n:
        while n % divisor == 0:
            most, n = divisor, n // divisor
        divisor += 1
    return max(most, n)


def radices_of(n: int) -> list[int]:
    """Return the factors 4, one 2 where that is left, then the odd primes, ascending."""
    found, radix = [], 4
    while n > 1:
        while n % radix == 0:
            found.append(radix)
            n //= radix
        radix = 2 if radix == 4 else 3 if radix == 2 else radix + 2
    return found


@functools.lru_cache(64)
def stages_of(n: int, dtype: torch.dtype, device: torch.device) -> Stages:
    """Return the stages of a transform of n complex numbers.

    Args:
        n: without a prime factor above `MOST_RADIX`.
        dtype: of a part.
        device: of the numbers.
    """
    radices, factors, first = radices_of(n), [np.empty((0, 2))], np.empty((0, 2))
    whole, m = turns(n, np.arange(n)), n
    for at, radix in enumerate(radices):
        m //= radix
        if radix % 2:
            factors.append(turns(radix, np.arange(radix)))
        if m == 1:
            break
        products = np.arange(m)[:, None] * np.arange(1, radix)[None] * (n // (m * radix))
        factors.append(whole[products].reshape(-1, 2))
        if at == 0:
            first = whole[products].transpose(1, 2, 0)
    table, first_table = (
        torch.from_numpy(np.ascontiguousarray(each)).to(device, dtype) for each in (np.vstack(factors), first)
    )
    return Stages(torch.tensor(radices, dtype=torch.int64, device=device), table, first_table)


@functools.lru_cache(64)
def first_turns(n: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Return cosine and sine of k / n of a turn for k = 0 … n / 2; arguments as above."""
    return torch.from_numpy(turns(n, np.arange(n // 2 + 1))).to(device, dtype)


def turns(n: int, k: Array) -> Array:
    """Return cosine and sine of k / n of a turn, in float64.

    Args:
        n: below 2^59.
        k: integers from 0 on.
    """
    quarters = (8 * k + n) // (2 * n)
    angle = torch.from_numpy(((4 * k - quarters * n) / n) * _HALF_PI)
    cosine, sine = as_array(unary("cos", angle)), as_array(unary("sin", angle))
    turned = [(cosine, sine), (-sine, cosine), (-cosine, -sine), (sine, -cosine)]
    return np.stack([np.choose(quarters % 4, [pair[part] for pair in turned]) for part in (0, 1)], -1)


def whole_spectrum(x: Tensor, dim: int, n: int) -> Tensor:
    """Return the whole transform of n real numbers from its first half and the middle."""
    rest = x.narrow(dim, 1, n - n // 2 - 1).flip(dim)
    return torch.cat([x, torch.conj_physical(rest)], dim)


def _mirrored(x: Tensor, dim: int, n: int) -> Tensor:
    """Return the whole spectrum of real numbers; parts that must be 0 are made 0."""
    first = x.narrow(dim, 0, n // 2 + 1).clone()
    for place in {0, n // 2} if n % 2 == 0 else {0}:
        torch.view_as_real(first.select(dim, place))[..., 1] = 0
    return whole_spectrum(first, dim, n)


def _by_convolution(x: Tensor, dim: int, scale: float, *, inverse: bool) -> Tensor:
    """Return the transform of any length by a convolution whose length is a power of two (Bluestein).

    It is computed in float64 and rounded once.
    """
    n = x.shape[dim]
    chirp, spectrum = _chirp(n, x.device)
    given = x.movedim(dim, -1).to(torch.complex128)
    padded = torch.zeros((*given.shape[:-1], spectrum.numel()), dtype=torch.complex128, device=x.device)
    padded[..., :n] = product(_exchanged(given) if inverse else given, chirp)
    last = padded.dim() - 1
    both = product(transform_complex(padded, last, 1.0, inverse=False), spectrum)
    found = product(transform_complex(both, last, 1.0 / spectrum.numel(), inverse=True)[..., :n], chirp)
    scaled = torch.view_as_real(_exchanged(found) if inverse else found) * scale
    return torch.view_as_complex(scaled).to(x.dtype).movedim(-1, dim).contiguous()


def _exchanged(x: Tensor) -> Tensor:
    """Return complex numbers whose parts have changed places."""
    real, imaginary = parts(x)
    return torch.complex(imaginary, real)


@functools.lru_cache(16)
def _chirp(n: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return conjugates of k k / (2 n) of a turn for k below n, and the transform of these around zero."""
    k = np.arange(n)
    found = np.moveaxis(turns(2 * n, k * k % (2 * n)), -1, 0)
    cosine, sine = (torch.from_numpy(each).to(device) for each in found)
    chirp, size = torch.complex(cosine, sine), 1 << (2 * n - 2).bit_length()
    around = torch.zeros(size, dtype=torch.complex128, device=device)
    around[:n] = chirp
    around[size - n + 1 :] = chirp[1:].flip(0)
    return torch.complex(cosine, -sine), transform_complex(around, 0, 1.0, inverse=False)
