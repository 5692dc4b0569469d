"""Orders of samples as pure functions of (seed, epoch, position): shuffled, weighted, by length."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from samebits.data.permutation import check_range, keyed, permutation, scaled
from samebits.errors import SamebitsError
from samebits.rng.active import PROCESS, required
from samebits.rng.seeds import check_seed, derive


@runtime_checkable
class Sampler(Protocol):
    """**Protocol:** the order of an epoch, of all ranks together, without a state.

    Attributes:
        repeats: whether an index may come twice in an epoch. Then the randomness of a sample follows from its
            position too, else from its index alone.
    """

    repeats: bool

    def __len__(self) -> int:
        """Return the number of samples of an epoch."""

    def indices(self, epoch: int, start: int, stop: int, *, seed: int | None = None) -> Any:
        """Return the indices at the positions from `start` to `stop - 1` of an epoch.

        Args:
            epoch: from 0.
            start: from 0.
            stop: up to `len(self)`.
            seed: from 0 to 2**64 - 1; by default the run seed that all ranks share.

        Returns:
            An array of `int64`.
        """

    def identity(self) -> int:
        """Return 63 bits that differ between orders: a resumed loader compares them."""


@dataclass(frozen=True, slots=True)
class Sequential:
    """0, 1, 2 and so on.

    Args:
        size: samples of the dataset.
    """

    size: int
    repeats = False

    def __len__(self) -> int:
        return self.size

    def indices(self, epoch: int, start: int, stop: int, *, seed: int | None = None) -> Any:
        """Return the positions themselves, in every epoch."""
        del epoch, seed
        check_range(start, stop, self.size)
        return np.arange(start, stop, dtype=np.int64)

    def identity(self) -> int:
        """Return 63 bits that follow from the size."""
        return identity_of("sequential", self.size)


@dataclass(frozen=True, slots=True)
class Shuffled:
    """Every index once, in another order in every epoch; nothing is stored (`data.permutation`).

    Args:
        size: samples of the dataset, up to 2**62.
    """

    size: int
    repeats = False

    def __len__(self) -> int:
        return self.size

    def indices(self, epoch: int, start: int, stop: int, *, seed: int | None = None) -> Any:
        """Return elements of the permutation whose key follows from the seed and the epoch."""
        return permutation(self.size, order_key(seed, epoch)).block(start, stop)

    def identity(self) -> int:
        """Return 63 bits that follow from the size."""
        return identity_of("shuffled", self.size)


class Listed:
    """A list of indices, in its order or shuffled.

    Args:
        indices: whole numbers from 0; one may come several times.
        shuffle: in another order in every epoch.

    Raises:
        SamebitsError: they are not whole numbers from 0; `sampler`.
    """

    def __init__(self, indices: Any, *, shuffle: bool = False) -> None:
        self._indices = _as_indices(indices)
        self._shuffle = shuffle
        self.repeats = bool(np.unique(self._indices).size < self._indices.size)

    def __len__(self) -> int:
        return int(self._indices.size)

    def indices(self, epoch: int, start: int, stop: int, *, seed: int | None = None) -> Any:
        """Return the indices at the positions, or at the shuffled positions."""
        if self._shuffle:
            return self._indices[permutation(len(self), order_key(seed, epoch)).block(start, stop)]
        check_range(start, stop, len(self))
        return self._indices[start:stop].copy()

    def identity(self) -> int:
        """Return 63 bits that follow from the indices."""
        return identity_of("listed", int(self._shuffle), self._indices.tobytes().hex())


def order_key(seed: int | None, epoch: int) -> int:
    """Return the key of an epoch's order: `derive(seed, "order", epoch)`.

    Raises:
        SamebitsError: no seed is given or in force, `no-seed`; it is not a seed, `seed`.
    """
    return derive(shared_seed() if seed is None else check_seed(seed), "order", int(epoch))


def shared_seed() -> int:
    """Return the run seed that all ranks of a distributed run share.

    Raises:
        SamebitsError: there is no run seed; `no-seed`.
    """
    return required(PROCESS.shared_seed)


def identity_of(*parts: int | str) -> int:
    """Return 63 bits that follow from those parts."""
    return derive(0, "identity", *parts) >> 1


def _as_indices(values: Any) -> Any:
    array = np.asarray(values)
    if array.size == 0:
        array = array.astype(np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu" or (array.size and int(array.min()) < 0):
        message = f"the indices are {_shown(array)}; expected a list of whole numbers from 0"
        raise SamebitsError(message, slug="sampler")
    return array.astype("<i8")


def _shown(array: Any) -> str:
    text = np.array2string(array, threshold=6, separator=", ")
    return f"of type {array.dtype}: {' '.join(text.split())[:80]}"


class BatchByLength:
    """Shuffles all samples, sorts each window of them by length, and shuffles the batches of a window.

    So a batch has samples of similar length, and the window that a sample is in is random. Only the samples
    of one window are handled at a time. A last batch that is not full stays last.

    Args:
        lengths: a number for each sample of the dataset.
        batch_size: samples of a global batch: the loader's `batch_size` times the number of ranks.
        window: batches that are sorted together, from 1.

    Raises:
        SamebitsError: the arguments are not such numbers; `sampler`.
    """

    repeats = False

    def __init__(self, lengths: Any, batch_size: int, *, window: int = 64) -> None:
        self._lengths = np.asarray(lengths)
        self.batch_size, self._window = int(batch_size), int(window)
        if self._lengths.ndim != 1 or self._lengths.dtype.kind not in "iuf":
            message = f"the lengths have shape {self._lengths.shape} and type {self._lengths.dtype}"
            raise SamebitsError(f"{message}; expected a list of numbers", slug="sampler")
        if self.batch_size < 1 or self._window < 1:
            message = f"batch_size is {batch_size} and window is {window}; expected whole numbers from 1"
            raise SamebitsError(message, slug="sampler")

    def __len__(self) -> int:
        return int(self._lengths.size)

    def indices(self, epoch: int, start: int, stop: int, *, seed: int | None = None) -> Any:
        """Return the indices at the positions, taken from the windows that hold them."""
        check_range(start, stop, len(self))
        if start == stop:
            return np.empty(0, np.int64)
        key, span = order_key(seed, epoch), self.batch_size * self._window
        first, last = start // span, (stop - 1) // span
        windows = np.concatenate([self._of_window(key, number) for number in range(first, last + 1)])
        return windows[start - first * span : stop - first * span]

    def _of_window(self, key: int, number: int) -> Any:
        span = self.batch_size * self._window
        begin = number * span
        drawn = permutation(len(self), key).block(begin, min(begin + span, len(self)))
        drawn = drawn[np.argsort(self._lengths[drawn], kind="stable")]
        full = drawn.size // self.batch_size
        order = np.argsort(
            keyed(np.arange(full, dtype=np.uint64), derive(key, "window", number)), kind="stable"
        )
        # The batch that is not full holds the longest samples; it ends the last window, and so the epoch.
        batches = drawn[: full * self.batch_size].reshape(full, self.batch_size)[order]
        return np.concatenate([batches.ravel(), drawn[full * self.batch_size :]])

    def identity(self) -> int:
        """Return 63 bits that follow from the lengths, the batch size and the window."""
        digest = hashlib.sha256(self._lengths.astype("<f8").tobytes()).hexdigest()
        return identity_of("by length", self.batch_size, self._window, digest)


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
        SamebitsError: the weights are not such numbers; `sampler`.
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
        """Return the indices that the positions draw."""
        check_range(start, stop, self._size)
        words = keyed(np.arange(start, stop, dtype=np.uint64), order_key(seed, epoch))
        return np.searchsorted(self._sums, scaled(words, self._total), side="right").astype(np.int64)

    def identity(self) -> int:
        """Return 63 bits that follow from the weights and the number of samples."""
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
