"""The shapes of tiles in which native/cuda/gemm_body.h and portable_conv.cu are compiled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class TileShape:
    """How the kernel is made.

    Args:
        name: in the name of the kernel.
        totals: where the totals of a thread are, as gemm_body.h numbers it.
        depth: how many k a stage has.
        stages: in shared memory.
        min_blocks: thread blocks that a multiprocessor is to hold.
    """

    name: str
    totals: int
    depth: int
    stages: int
    min_blocks: int
    rows: int = 128
    columns: int = 128

    @property
    def threads(self) -> int:
        """Return how many there are in a block: each has 8 x 8 outputs."""
        return self.rows * self.columns // 64

    def shared_bytes(self, *, b_along_k: bool) -> int:
        """Return the dynamic shared memory of a block, as `gemm_shape` has it."""
        stage = self.depth * (self.rows + 4 + self.columns + 4 * b_along_k)
        totals = self.rows * self.columns if self.totals == _IN_SHARED else 0
        return 4 * (self.stages * stage + totals)

    def kernel(self, *, a_along_k: bool, b_along_k: bool) -> str:
        """Return the name of the kernel for operands that are contiguous along k, or across it."""
        return f"gemm_{self.name}_{int(a_along_k)}{int(b_along_k)}"

    def macros(self, *, a_along_k: bool, b_along_k: bool) -> dict[str, int | str]:
        """Return what gemm_body.h is compiled with for them."""
        return {
            "GEMM_NAME": self.kernel(a_along_k=a_along_k, b_along_k=b_along_k),
            "GEMM_ROWS": self.rows,
            "GEMM_COLUMNS": self.columns,
            "GEMM_DEPTH": self.depth,
            "GEMM_STAGES": self.stages,
            "GEMM_TOTALS": self.totals,
            "GEMM_MIN_BLOCKS": self.min_blocks,
            "GEMM_A_ALONG_K": int(a_along_k),
            "GEMM_B_ALONG_K": int(b_along_k),
        }


@dataclass(frozen=True)
class ConvShape:
    """A tile of a convolution, or of the gradient of its weight; three stages of 16 terms each.

    Args:
        rows: channels of the output.
        columns: pixels, or (channel, tap) of the weight.
        min_blocks: thread blocks that a multiprocessor is to hold.
    """

    rows: int
    columns: int
    min_blocks: int

    threads: ClassVar[int] = 128

    def conv_bytes(self, taps: int, blocks: int) -> int:
        """Return the dynamic shared memory of a convolution.

        Args:
            taps: positions of the kernel.
            blocks: how many blocks of 128 terms its sum has.
        """
        return self._panels(0) + 4 * self.rows * self.columns + 16 * taps + 4 * (blocks + 1)

    def weight_bytes(self, *, is_apart: bool) -> int:
        """Return that of the gradient of a weight, whose chains may be kept apart."""
        return self._panels(4) + 4 * self.rows * self.columns * (not is_apart) + 16 * self.columns

    def _panels(self, gap: int) -> int:
        return 4 * 3 * 16 * (self.rows + 4 + self.columns + gap)

    def macros(self) -> dict[str, int]:
        """Return what portable_conv.cu is compiled with."""
        return {
            "CONV_ROWS": self.rows,
            "CONV_COLUMNS": self.columns,
            "CONV_MIN_BLOCKS": self.min_blocks,
        }


_IN_REGISTERS, _IN_SHARED, _APART = 0, 1, 2
SHAPES = (
    TileShape("shared", _IN_SHARED, depth=16, stages=3, min_blocks=2),
    TileShape("registers", _IN_REGISTERS, depth=8, stages=4, min_blocks=1),
)
"""The fastest on an H200 first; the second one needs less shared memory."""
SPLIT = TileShape("apart", _APART, depth=16, stages=3, min_blocks=4, rows=64, columns=64)
"""For products with few outputs: thread blocks share their k."""
CONV_SHAPES = (ConvShape(128, 64, 3), ConvShape(64, 128, 3), ConvShape(32, 128, 4))
"""The most rows first."""
