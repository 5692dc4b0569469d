"""The key of a sample: what all of its randomness follows from. Defined in docs/data.md."""

from __future__ import annotations

from hashlib import blake2b

from samebits.determinism.seeds import derive

_MASK = 2**64 - 1
_SAMPLE, _BATCH, _ELEMENT = b"s", b"b", b"e"


class EpochKeys:
    """The keys of the samples of one epoch: 48 bytes each, by BLAKE2b.

    Args:
        seed: from 0 to 2**64 - 1.
        epoch: from 0.
    """

    __slots__ = ("_batch", "_element", "_sample", "epoch", "seed")

    def __init__(self, seed: int, epoch: int) -> None:
        self.seed, self.epoch = seed, epoch
        secret = derive(seed, "samples", epoch).to_bytes(8, "little")
        # A copy of a state that has its key costs half as much as a new one.
        self._sample, self._batch, self._element = (
            blake2b(kind, key=secret, digest_size=48) for kind in (_SAMPLE, _BATCH, _ELEMENT)
        )

    def sample(self, index: int, position: int | None = None) -> bytes:
        """The key of a sample of a map-style dataset.

        Args:
            index: its index in the dataset.
            position: its place in the order of the epoch, where an index may come twice; else None.
        """
        state = self._sample.copy()
        state.update((index & _MASK).to_bytes(8, "little"))
        if position is not None:
            state.update(position.to_bytes(8, "little"))
        return state.digest()

    def batch(self, position: int) -> bytes:
        """The key of what happens to a batch as a whole, by the position of its first sample."""
        state = self._batch.copy()
        state.update(position.to_bytes(8, "little"))
        return state.digest()

    def element(self, *numbers: int) -> bytes:
        """The key of an element of an iterable dataset, such as (shard, number in the shard)."""
        state = self._element.copy()
        for number in numbers:
            state.update(number.to_bytes(8, "little"))
        return state.digest()
