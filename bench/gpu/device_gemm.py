"""Matrix products on a device by the kernel of native/cuda/gemm.cu, in several shapes."""

from __future__ import annotations

import ctypes
import functools
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

import torch
from cuda_module import LOCAL_BYTES, NUM_REGS, Source, capability, compile_all, compile_source, load

from samebits._cuda.units import PRODUCTS
from samebits.portable.backends.cuda_chains import K_BLOCK, Chains
from samebits.portable.backends.cuda_kernels import CudaKernels

if TYPE_CHECKING:
    from collections.abc import Sequence

TILE = "gemm_product_tile"


class Totals(IntEnum):
    """Where totals are, numbered as in native/cuda/gemm_body.h."""

    REGISTERS = 0
    SHARED = 1
    APART = 2


@dataclass(frozen=True)
class Variant:
    """How a kernel is made.

    Args:
        rows: of c in a tile; a multiple of 64.
        columns: of c in a tile; a multiple of 32.
        depth: how many k a stage has; divides 128.
        stages: in shared memory.
        totals: where they are.
        min_blocks: thread blocks that a multiprocessor is to hold.
        lines: rows of c for each thread, which has 8 columns: 8, or 16 if `rows` is a multiple of 128.
        group: rows of tiles that are computed side by side.
    """

    rows: int
    columns: int
    depth: int
    stages: int
    totals: Totals
    min_blocks: int
    lines: int = 8
    group: int = 1

    @property
    def name(self) -> str:
        """Tile, outputs of a thread, group, stages, place of totals, blocks on a multiprocessor."""
        tile = f"{self.rows}x{self.columns}x{self.depth}"
        thread = f"{self.lines}x8 group {self.group}"
        return f"{tile} {thread} stages {self.stages} {self.totals.name.lower()} {self.min_blocks}/SM"

    @property
    def threads(self) -> int:
        """In a block."""
        return self.rows * self.columns // (8 * self.lines)

    def shared_bytes(self, along_k: tuple[bool, bool]) -> int:
        """Return the dynamic shared memory, as gemm_shape in native/cuda/gemm_body.h."""
        stage = self.depth * (self.rows + 4 + self.columns + (4 if along_k[1] else 0))
        totals = self.rows * self.columns if self.totals == Totals.SHARED else 0
        return 4 * (self.stages * stage + totals)

    def source(self, along_k: tuple[bool, bool]) -> Source:
        """Return the source for operands that are contiguous along k or not."""
        macros = {
            "ROWS": self.rows,
            "COLUMNS": self.columns,
            "DEPTH": self.depth,
            "STAGES": self.stages,
            "TOTALS": int(self.totals),
            "MIN_BLOCKS": self.min_blocks,
            "LINES": self.lines,
            "GROUP": self.group,
            "A_ALONG_K": int(along_k[0]),
            "B_ALONG_K": int(along_k[1]),
        }
        return Source("gemm.cu", TILE, {f"GEMM_{name}": value for name, value in macros.items()})


class _Product(ctypes.Structure):
    """gemm_product in native/cuda/gemm_body.h."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("a", "b", "c")),
        *((name, ctypes.c_longlong) for name in ("a_line", "b_line", "a_batch", "b_batch", "c_batch")),
        *((name, ctypes.c_int) for name in ("m", "n", "k", "blocks_each")),
    )


class Gemm:
    """One variant for one layout of the operands, on the current device.

    Args:
        variant: how it is made.
        along_k: whether rows of a are contiguous, and whether columns of b are.
        code: the compiled source; None to compile it now.
    """

    def __init__(
        self, variant: Variant, along_k: tuple[bool, bool] = (True, False), code: bytes | None = None
    ) -> None:
        self._variant, self._along_k = variant, along_k
        self._tile = load(code or compile_source(variant.source(along_k), capability()), [TILE])[TILE]
        self._shared = variant.shared_bytes(along_k)
        self._tile.allow_shared(self._shared)

    @property
    def registers(self) -> int:
        """Of a thread."""
        return self._tile.attribute(NUM_REGS)

    @property
    def spilled_bytes(self) -> int:
        """Local memory of a thread."""
        return self._tile.attribute(LOCAL_BYTES)

    def multiply(self, a: torch.Tensor, b: torch.Tensor, blocks_each: int = 1) -> torch.Tensor:
        """Compute a @ b on the current stream.

        Args:
            a: (m, k), float32, on the device, in the layout of this kernel.
            b: (k, n), the same.
            blocks_each: blocks of k for each share, where totals are apart.

        Returns:
            (m, n), contiguous.
        """
        (m, k), n = a.shape, b.shape[1]
        blocks = max(1, -(-k // K_BLOCK))
        apart = self._variant.totals == Totals.APART
        out = torch.empty(m, n, device=a.device)
        chains = Chains(torch.empty(1, blocks, m * n, device=a.device) if apart else out, 0)
        each = blocks_each if apart else blocks
        lines = (a.stride(0 if self._along_k[0] else 1), b.stride(1 if self._along_k[1] else 0))
        addresses = (a.data_ptr(), b.data_ptr(), chains.memory.data_ptr())
        grid = (-(-n // self._variant.columns), -(-m // self._variant.rows), -(-blocks // each))
        product = _Product(*addresses, *lines, 0, 0, 0, m, n, k, each)
        self._tile.launch(grid, self._variant.threads, [product], self._shared)
        if apart:
            adding_kernels().launch(PRODUCTS, "add_chains_f32", chains.parameters(out), out.numel())
        return out


@functools.cache
def adding_kernels() -> CudaKernels:
    """Return portable mode's kernels, of which one adds chains."""
    return CudaKernels(torch.cuda.current_device())


def build_all(
    wanted: Sequence[tuple[Variant, tuple[bool, bool]]],
) -> tuple[dict[tuple[Variant, tuple[bool, bool]], Gemm], dict[str, str]]:
    """Compile kernels side by side.

    Returns:
        those that could be made, and the errors of the others by name.
    """
    made, failed = {}, {}
    codes = compile_all([variant.source(along_k) for variant, along_k in wanted], capability())
    for key, code in zip(wanted, codes, strict=True):
        try:
            if isinstance(code, RuntimeError):
                raise code
            made[key] = Gemm(*key, code)
        except RuntimeError as error:  # noqa: PERF203 - the others can still be measured
            failed[f"{key[0].name} {key[1]}"] = str(error)
    return made, failed
