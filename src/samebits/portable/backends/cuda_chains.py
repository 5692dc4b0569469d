"""Chains of a contraction that thread blocks of a GPU share: kept in memory, then added in order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from samebits.portable.backends.parameters_cuda import SbdChains

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import Tensor

K_BLOCK = 128
"""The terms of a chain, `SBP_K_BLOCK`."""
_MOST_BYTES = 64 << 20


def are_few(tiles: int, processors: int) -> bool:
    """Tell whether there are fewer tiles than multiprocessors, some of which would have nothing to do."""
    return tiles < processors


def blocks_each(blocks: int, tiles: int, processors: int) -> int:
    """Return how many blocks of k each thread block takes, so that a multiprocessor has about four to do.

    Args:
        blocks: of each sum.
        tiles: how many thread blocks there are for one block of k.
        processors: multiprocessors.
    """
    return -(-blocks // min(blocks, -(-4 * processors // tiles)))


@dataclass(frozen=True)
class Chains:
    """Memory for the chains of some blocks of k.

    Args:
        memory: (groups, blocks, outputs of a group).
        first: the number of the first block.
    """

    memory: Tensor
    first: int

    @classmethod
    def of(cls, out: Tensor, groups: int, blocks: int) -> Iterator[Chains]:
        """Yield the blocks in portions of at most 64 MB, if one alone is not more; one of none for no blocks.

        Args:
            out: what the chains are added to; its first sizes are those of the groups.
            groups: contractions of as many outputs each.
            blocks: of k, of each output.
        """
        at_a_time = max(1, min(blocks, _MOST_BYTES // max(1, out.numel() * out.element_size())))
        for first in range(0, max(1, blocks), at_a_time):
            count = min(at_a_time, blocks - first)
            yield cls(out.new_empty((groups, count, out.numel() // max(1, groups))), first)

    @property
    def count(self) -> int:
        """Return how many blocks there are."""
        return self.memory.shape[1]

    def parameters(self, out: Tensor) -> SbdChains:
        """Return the parameters of the kernel that adds them to `out`."""
        groups, blocks, outputs = self.memory.shape
        return SbdChains(
            self.memory.data_ptr(), out.data_ptr(), groups, outputs, blocks, is_first=self.first == 0
        )
