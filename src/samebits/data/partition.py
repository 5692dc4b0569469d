"""Which part of an order a rank gets in each batch: nothing but arithmetic."""

from __future__ import annotations

from dataclasses import dataclass

from samebits.errors import SamebitsError

TAILS = ("short", "drop", "pad")


@dataclass(frozen=True, slots=True)
class Partition:
    """Cuts the global order into global batches, and each of them into contiguous parts, one for each rank.

    Args:
        size: samples in the global order.
        batch_size: samples of a full batch of one rank.
        world_size: how many ranks there are.
        rank: which one this is, from 0.
        tail: what becomes of the last batch when it is not full. `short`: it is spread over the ranks, whose
            numbers differ by one at most. `drop`: it is left out. `pad`: it is filled from the beginning of
            the order.
    """

    size: int
    batch_size: int
    world_size: int = 1
    rank: int = 0
    tail: str = "short"

    def __post_init__(self) -> None:
        if self.tail not in TAILS:
            message = f"tail is {self.tail!r}; expected one of {', '.join(TAILS)}"
            raise SamebitsError(message, slug="loader-option")
        if self.batch_size < 1:
            message = f"batch_size is {self.batch_size}; expected a whole number from 1"
            raise SamebitsError(message, slug="loader-option")
        if not 0 <= self.rank < self.world_size:
            message = f"the rank is {self.rank} of {self.world_size}; expected one from 0 to world_size - 1"
            raise SamebitsError(message, slug="rank")

    @property
    def global_batch(self) -> int:
        """Samples of a full batch of all ranks together."""
        return self.batch_size * self.world_size

    @property
    def positions(self) -> int:
        """Positions of one epoch: `size`, less what is dropped, or more by what is repeated."""
        if self.tail == "drop":
            return self.size // self.global_batch * self.global_batch
        if self.tail == "pad":
            return -(-self.size // self.global_batch) * self.global_batch
        return self.size

    @property
    def rest(self) -> int:
        """Samples of the last batch when it is not full, else 0."""
        return self.size % self.global_batch

    def __len__(self) -> int:
        """Global batches of one epoch."""
        return (self.positions + self.global_batch - 1) // self.global_batch

    def part(self, batch: int) -> tuple[int, int]:
        """The positions of this rank in a global batch: the first, and the one after the last."""
        begin = batch * self.global_batch
        count = min(self.global_batch, self.positions - begin)
        return begin + -(-count * self.rank // self.world_size), begin + -(
            -count * (self.rank + 1) // self.world_size
        )

    def batches_from(self, position: int) -> range:
        """The global batches of which this rank gets something, from the end of another one on."""
        left = range(-(-position // self.global_batch), len(self))
        first, end = self.part(left[-1]) if left else (0, 1)
        return left if first < end else left[:-1]

    @property
    def ranks_without_last(self) -> int:
        """How many ranks get nothing of the last batch."""
        return max(0, self.world_size - self.rest) if self.rest and self.tail == "short" else 0
