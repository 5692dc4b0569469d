"""Random values ("Random numbers" in docs/reference/portable-numerics.md), each from a key of 64 bits."""

from __future__ import annotations

import math
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch

from samebits.portable._tensors import as_array, as_tensor
from samebits.portable.backends import backend_of

if TYPE_CHECKING:
    from torch import Tensor


class Kind(IntEnum):
    """The kinds of random values, numbered as in native/portable/random.h."""

    WORDS = 0
    UNIFORM_F32 = 1
    UNIFORM_F64 = 2
    BERNOULLI_F32 = 3
    BERNOULLI_U8 = 4
    BERNOULLI_P_F32 = 5
    BERNOULLI_P_F64 = 6
    RANGE = 7
    NORMAL_F32 = 8
    NORMAL_F64 = 9
    EXPONENTIAL_F32 = 10
    EXPONENTIAL_F64 = 11


class Settings(NamedTuple):
    """The numbers of one fill; the kind decides which of them count (native/portable/random.h).

    Args:
        size: how many words or elements; None for all elements.
        bits: of a uniform value, or the threshold of the kind, or how many integers.
        low: the least integer.
        source: probabilities of each element.
        stream: of words.
        a: first parameter of the distribution.
        b: second one.
    """

    size: int | None = None
    bits: int = 0
    low: int = 0
    source: Tensor | None = None
    stream: int = 0
    a: float = 0.0
    b: float = 0.0


_UNIFORM_BITS = {torch.float32: 24, torch.float16: 11, torch.bfloat16: 8}


def words64(key: int, count: int) -> Tensor:
    """Return the first `count` pairs of words, as int64, in CPU memory."""
    out = torch.empty(count, dtype=torch.int64, device="cpu")
    backend_of(out).fill_random(Kind.WORDS, out, key, Settings(size=2 * count))
    return out


def uniform_into(out: Tensor, key: int, low: float, high: float, precision: torch.dtype) -> None:
    """Draw values in [low, high).

    Args:
        out: contiguous, float32 or float64.
        key: of the op.
        low: the lower bound.
        high: the upper one.
        precision: the dtype whose number of bits the values in [0, 1) have.
    """
    bits = _UNIFORM_BITS.get(precision, 53)
    kind = Kind.UNIFORM_F64 if out.dtype == torch.float64 else Kind.UNIFORM_F32
    backend_of(out).fill_random(kind, out, key, Settings(bits=bits, a=low, b=high))


def bernoulli_into(out: Tensor, key: int, p: float) -> None:
    """Draw 1 with probability p, else 0; `out` is contiguous, float32 or uint8."""
    kind = Kind.BERNOULLI_F32 if out.dtype == torch.float32 else Kind.BERNOULLI_U8
    backend_of(out).fill_random(kind, out, key, Settings(bits=math.ceil(p * 2.0**32), a=p))


def bernoulli_each(p: Tensor, key: int) -> Tensor:
    """Draw 1 with the probability of each element, else 0, as uint8.

    Args:
        p: float32 or float64.
        key: of the op.
    """
    p = p.contiguous()
    out = torch.empty(p.shape, dtype=torch.uint8, device=p.device)
    kind = Kind.BERNOULLI_P_F32 if p.dtype == torch.float32 else Kind.BERNOULLI_P_F64
    backend_of(out).fill_random(kind, out, key, Settings(source=p))
    return out


def integers_into(out: Tensor, key: int, low: int, size: int) -> None:
    """Draw values in low … low + size - 1; `out` is contiguous, int64; size is at most 2^64."""
    backend_of(out).fill_random(Kind.RANGE, out, key, Settings(bits=size, low=low))


def normal_into(out: Tensor, key: int, mean: float, deviation: float) -> None:
    """Draw normal values; `out` is contiguous, float32 or float64."""
    kind = Kind.NORMAL_F32 if out.dtype == torch.float32 else Kind.NORMAL_F64
    backend_of(out).fill_random(kind, out, key, Settings(a=mean, b=deviation))


def exponential_into(out: Tensor, key: int, rate: float) -> None:
    """Draw exponential values; `out` is contiguous, float32 or float64."""
    kind = Kind.EXPONENTIAL_F32 if out.dtype == torch.float32 else Kind.EXPONENTIAL_F64
    backend_of(out).fill_random(kind, out, key, Settings(a=rate))


def normal_stream(like: Tensor, key: int, stream: int) -> Tensor:
    """Return float64 normal values of mean 0 and standard deviation 1, from another stream of words.

    Args:
        like: has as many elements in one row, on the same device.
        key: of the op.
        stream: of words.
    """
    out = torch.empty(like.numel(), dtype=torch.float64, device=like.device)
    backend_of(out).fill_random(Kind.NORMAL_F64, out, key, Settings(b=1.0, stream=stream))
    return out


def exponential_stream(like: Tensor, key: int, stream: int) -> Tensor:
    """Return float64 exponential values of rate 1, from another stream of words; arguments as above."""
    out = torch.empty(like.numel(), dtype=torch.float64, device=like.device)
    backend_of(out).fill_random(Kind.EXPONENTIAL_F64, out, key, Settings(a=1.0, stream=stream))
    return out


def cumulated(rows: Tensor) -> Tensor:
    """Return sums of each row up to each element, one addition after the other, float64."""
    return as_tensor(np.add.accumulate(as_array(rows.contiguous().cpu()), axis=-1)).to(rows.device)


def order(rows: Tensor) -> Tensor:
    """Return the indices of each row's elements in ascending order; equal ones stay in their order."""
    return as_tensor(np.argsort(as_array(rows.contiguous().cpu()), axis=-1, kind="stable")).to(rows.device)


def permutation(key: int, count: int) -> Tensor:
    """Return the order of `count` pairs of words, compared as numbers of 64 bits without a sign.

    Args:
        key: of the op.
        count: how many.

    Returns:
        int64, in CPU memory.
    """
    drawn = as_array(words64(key, count)).view(np.uint64)
    return as_tensor(np.argsort(drawn, kind="stable")).to("cpu")
