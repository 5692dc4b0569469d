"""Batches of samples of similar length, in a random order."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from samebits.data.mixing import keyed
from samebits.data.permutation import check_range, permutation
from samebits.data.samplers import identity_of, order_key
from samebits.determinism.seeds import derive
from samebits.errors import SamebitsError


class BatchByLength:
    """Shuffles all samples, sorts each window of them by length, and shuffles the batches of a window.

    So a batch has samples of similar length, and what is random is the window that a sample is in. The
    samples of one window are looked at at a time; a last batch that is not full stays last.

    Args:
        lengths: a number for each sample of the dataset.
        batch_size: samples of a global batch: the loader's `batch_size` times the number of ranks.
        window: batches that are sorted together, from 1.

    Raises:
        SamebitsError: these are no such numbers; `sampler`.
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
        """Those of the windows that the positions are in."""
        check_range(start, stop, len(self))
        if start == stop:
            return np.empty(0, np.int64)
        key, span = order_key(seed, epoch), self.batch_size * self._window
        first, last = start // span, (stop - 1) // span
        found = np.concatenate([self._of_window(key, number) for number in range(first, last + 1)])
        return found[start - first * span : stop - first * span]

    def _of_window(self, key: int, number: int) -> Any:
        span = self.batch_size * self._window
        begin = number * span
        drawn = permutation(len(self), key).block(begin, min(begin + span, len(self)))
        drawn = drawn[np.argsort(self._lengths[drawn], kind="stable")]
        full = drawn.size // self.batch_size
        order = np.argsort(
            keyed(np.arange(full, dtype=np.uint64), derive(key, "window", number)), kind="stable"
        )
        # The batch that is not full holds the longest; it ends the last window, and so the epoch.
        batches = drawn[: full * self.batch_size].reshape(full, self.batch_size)[order]
        return np.concatenate([batches.ravel(), drawn[full * self.batch_size :]])

    def identity(self) -> int:
        """Of the lengths, the batch size and the window."""
        digest = hashlib.sha256(self._lengths.astype("<f8").tobytes()).hexdigest()
        return identity_of("by length", self.batch_size, self._window, digest)
