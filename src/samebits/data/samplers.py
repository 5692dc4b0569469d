"""Orders of samples as pure functions of (seed, epoch, position)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from samebits.data.permutation import check_range, permutation
from samebits.determinism.process import PROCESS, required
from samebits.determinism.seeds import check_seed, derive
from samebits.errors import SamebitsError


@runtime_checkable
class Sampler(Protocol):
    """**Protocol:** the order of an epoch, of all ranks together, without a state.

    Attributes:
        repeats: whether an index may come twice in an epoch. Then the randomness of a sample follows from its
            position too, else from its index alone.
    """

    repeats: bool

    def __len__(self) -> int:
        """Samples of an epoch."""

    def indices(self, epoch: int, start: int, stop: int, *, seed: int | None = None) -> Any:
        """The indices at the positions from `start` to `stop - 1` of an epoch.

        Args:
            epoch: from 0.
            start: from 0.
            stop: up to `len(self)`.
            seed: from 0 to 2**64 - 1; by default the run seed that all ranks share.

        Returns:
            An array of `int64`.
        """

    def identity(self) -> int:
        """63 bits that are another number for another order: a resumed loader compares them."""


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
        """The positions themselves, in every epoch."""
        del epoch, seed
        check_range(start, stop, self.size)
        return np.arange(start, stop, dtype=np.int64)

    def identity(self) -> int:
        """Of the size."""
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
        """Of the permutation whose key follows from the seed and the epoch."""
        return permutation(self.size, order_key(seed, epoch)).block(start, stop)

    def identity(self) -> int:
        """Of the size."""
        return identity_of("shuffled", self.size)


class Listed:
    """Indices that are given, in their order or shuffled.

    Args:
        indices: whole numbers from 0; one may come several times.
        shuffle: in another order in every epoch.

    Raises:
        SamebitsError: they are not whole numbers from 0; `sampler`.
    """

    def __init__(self, indices: Any, *, shuffle: bool = False) -> None:
        self._indices = _whole(indices)
        self._shuffle = shuffle
        self.repeats = bool(np.unique(self._indices).size < self._indices.size)

    def __len__(self) -> int:
        return int(self._indices.size)

    def indices(self, epoch: int, start: int, stop: int, *, seed: int | None = None) -> Any:
        """Those at the positions, or at what a permutation makes of the positions."""
        if self._shuffle:
            return self._indices[permutation(len(self), order_key(seed, epoch)).block(start, stop)]
        check_range(start, stop, len(self))
        return self._indices[start:stop].copy()

    def identity(self) -> int:
        """Of the indices."""
        return identity_of("listed", int(self._shuffle), self._indices.tobytes().hex())


def order_key(seed: int | None, epoch: int) -> int:
    """The key of an epoch's order: `derive(seed, "order", epoch)`.

    Raises:
        SamebitsError: no seed is given or in force, `no-seed`; it is no seed, `seed`.
    """
    return derive(shared_seed() if seed is None else check_seed(seed), "order", int(epoch))


def shared_seed() -> int:
    """The run seed that all ranks of a distributed run share.

    Raises:
        SamebitsError: there is no run seed; `no-seed`.
    """
    return required(PROCESS.shared_seed)


def identity_of(*parts: int | str) -> int:
    """63 bits that follow from those parts."""
    return derive(0, "identity", *parts) >> 1


def _whole(values: Any) -> Any:
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
