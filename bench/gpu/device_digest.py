"""Digests of tensors on a device by the kernels of native/cuda/digest.cu: one launch for many tensors.

Nothing here waits for the device but `Plan.result`.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

import numpy as np
import torch
from cuda_module import Kernel, Source, build

from samebits.digest._definition import BLOCK, DTYPES

if TYPE_CHECKING:
    from collections.abc import Sequence

VARIANTS = ("digest_1x1", "digest_1x2", "digest_2x1", "digest_2x2")
"""Words of a stripe for each thread x blocks that a thread reads at once."""
NAMES = (*VARIANTS, "digest_finish")
SOURCE = Source("digest.cu", "digest_1x1")
UNIT = 64 * BLOCK
THREADS = 256
SUMS = 16


def kernels() -> dict[str, Kernel]:
    """Return the kernels, compiled for the current device."""
    return build(SOURCE, NAMES)


class Plan:
    """Prepared tables of some tensors, on their device.

    Args:
        functions: what `kernels` returned.
        tensors: contiguous, all on the current device; at least one.
        variant: one of `VARIANTS`.
        blocks_per_processor: how many thread blocks are launched for each multiprocessor, at most.
    """

    def __init__(
        self,
        functions: dict[str, Kernel],
        tensors: Sequence[torch.Tensor],
        variant: str = "digest_1x1",
        blocks_per_processor: int = 8,
    ) -> None:
        self._add, self._finish = functions[variant], functions["digest_finish"]
        self._tensors = tuple(tensors)
        device = tensors[0].device
        host, counts, self._units = _tables(self._tensors)
        tables = torch.empty(host.shape, dtype=host.dtype, device=device)
        tables.copy_(host, non_blocking=True)
        self._host = host  # the copy may still read it
        self._table, self._first_units, self._sizes = tables.split(counts)
        self._sums = torch.empty(len(tensors), SUMS, dtype=torch.int64, device=device)
        self._out = torch.empty(len(tensors), 2, dtype=torch.int64, pin_memory=True)
        processors = torch.cuda.get_device_properties(device).multi_processor_count
        self._grid = max(1, min(self._units, processors * blocks_per_processor))

    def launch(self) -> None:
        """Digest on the current stream, into memory of the host."""
        count = ctypes.c_ulonglong(len(self._tensors))
        self._sums.zero_()
        self._add.launch((self._grid,), THREADS, [self._table, self._first_units, count, self._sums])
        grid = (-(-len(self._tensors) // 64),)
        self._finish.launch(grid, 64, [self._table, self._sizes, count, self._sums, self._out])

    def result(self) -> bytes:
        """Wait for the current stream; return 16 bytes for each tensor."""
        torch.cuda.current_stream().synchronize()
        return self._out.numpy().tobytes()


def digest_on_device(functions: dict[str, Kernel], tensors: Sequence[torch.Tensor], variant: str) -> bytes:
    """Return 16 bytes for each tensor, whatever its strides."""
    plan = Plan(functions, [tensor.contiguous() for tensor in tensors], variant)
    plan.launch()
    return plan.result()


def _tables(tensors: Sequence[torch.Tensor]) -> tuple[torch.Tensor, list[int], int]:
    """Return the numbers that the kernels read, in pinned memory; lengths of the three tables; all units."""
    rows: list[int] = []
    sizes: list[int] = []
    first_units = [0]
    for tensor in tensors:
        n_bytes = tensor.numel() * tensor.element_size()
        code, _ = DTYPES[str(tensor.dtype).removeprefix("torch.")]
        rows += (tensor.data_ptr(), n_bytes, code, tensor.dim(), len(sizes))
        sizes += tensor.shape
        first_units.append(first_units[-1] + -(-n_bytes // UNIT))
    sizes.append(0)  # never empty
    numbers = np.array([*rows, *first_units, *sizes], np.uint64).view(np.int64)
    host = torch.from_numpy(numbers).pin_memory()
    return host, [len(rows), len(first_units), len(sizes)], first_units[-1]
