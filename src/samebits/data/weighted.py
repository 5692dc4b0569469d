"""Draws with replacement, by weight: exact integer arithmetic, no torch.multinomial, which changed in 2.7."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from samebits.data.mixing import keyed, scaled
from samebits.data.permutation import check_range
from samebits.data.samplers import identity_of, order_key
from samebits.errors import SamebitsError

_TOTAL_BITS = 62


class Weighted:
    """Each position draws an index with a chance proportional to its weight, with replacement.

    Weights become whole numbers: floats are multiplied by one power of two, as large as their sum allows, and
    rounded to the nearest even; whole numbers whose sum is below 2**62 stay. A position draws the first
    index whose cumulative weight exceeds `hash(position) * total >> 64`.

    Args:
        weights: one number from 0 for each sample of the dataset, not all 0.
        num_samples: positions of an epoch; by default as many as there are weights.

    Raises:
        SamebitsError: the weights are no such numbers; `sampler`.
    """

    repeats = True

    def __init__(self, weights: Any, num_samples: int | None = None) -> None:
        whole = _whole_weights(_checked(weights))
        self._sums = np.cumsum(whole, dtype=np.uint64)
        self._total = int(self._sums[-1])
        self._size = int(self._sums.size) if num_samples is None else int(num_samples)
        if self._total == 0 or self._size < 0:
            message = "all weights are 0" if self._total == 0 else f"num_samples is {num_samples}"
            raise SamebitsError(f"{message}; expected a weight above 0 and a number from 0", slug="sampler")

    def __len__(self) -> int:
        return self._size

    def indices(self, epoch: int, start: int, stop: int, *, seed: int | None = None) -> Any:
        """What those positions draw."""
        check_range(start, stop, self._size)
        words = keyed(np.arange(start, stop, dtype=np.uint64), order_key(seed, epoch))
        return np.searchsorted(self._sums, scaled(words, self._total), side="right").astype(np.int64)

    def identity(self) -> int:
        """Of the weights and the number of samples."""
        digest = hashlib.sha256(self._sums.astype("<u8").tobytes()).hexdigest()
        return identity_of("weighted", self._size, digest)


def _checked(weights: Any) -> Any:
    array = np.asarray(weights)
    if array.ndim != 1 or array.size == 0 or array.dtype.kind not in "iuf":
        kind = f"of type {array.dtype} and shape {array.shape}"
        message = f"the weights are {kind}; expected a list of numbers, one for each sample"
        raise SamebitsError(message, slug="sampler")
    wrong = np.flatnonzero(~(np.isfinite(array) & (array >= 0)))
    if wrong.size:
        message = f"weight {wrong[0]} is {array[wrong[0]]}; expected a finite number from 0"
        raise SamebitsError(message, slug="sampler")
    return array


def _whole_weights(array: Any) -> Any:
    if array.dtype.kind in "iu" and sum(map(int, array)) < 2**_TOTAL_BITS:
        return array.astype(np.uint64)
    floats = array.astype(np.float64)
    # The largest is below 2**exponent, so the sum of n of them is below 2**62.
    exponent = int(np.frexp(floats.max())[1])
    shift = _TOTAL_BITS - 1 - int(floats.size).bit_length() - exponent
    return np.rint(np.ldexp(floats, shift)).astype(np.uint64)
