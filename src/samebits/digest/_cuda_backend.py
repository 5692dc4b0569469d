"""The digest on a GPU of NVIDIA: many tensors in one launch, read where they lie (native/cuda/digest.cu).

The kernels run on torch's current stream, after the work that computes the tensors; 16 bytes for each tensor
reach the host, which waits for them.
"""

from __future__ import annotations

import ctypes
import functools
from array import array
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from samebits._cuda.driver import DriverError, load_kernels
from samebits._cuda.nvrtc import CompileError, compile_kernels
from samebits._cuda.sources import read_sources
from samebits.digest import _definition as d

if TYPE_CHECKING:
    from collections.abc import Sequence

    from samebits._cuda.driver import Kernel

# As native/cuda/digest_body.h has them.
_UNIT = 64 * d.BLOCK
_THREADS = 256
_WORDS_OF_SUMS = 2 * d.SUMS
_KERNELS = ("digest_1x1", "digest_finish")

_BLOCKS_PER_PROCESSOR = 8
_FINISHING_THREADS = 64
_CODES = {getattr(torch, name): code for name, (code, _) in d.DTYPES.items() if hasattr(torch, name)}


def open_backend(device: torch.device) -> CudaBackend | None:
    """Return the backend of a device; None where the kernels cannot be compiled or loaded."""
    return _open(torch.cuda.current_device() if device.index is None else device.index)


@functools.cache
def _open(index: int) -> CudaBackend | None:
    if torch.version.cuda is None:  # ROCm
        return None
    with torch.cuda.device(index):
        properties = torch.cuda.get_device_properties(index)
        torch.cuda.current_stream().synchronize()  # makes the context current
        try:
            capability = (properties.major, properties.minor)
            code = compile_kernels("digest.cu", read_sources(), capability, torch.version.cuda)
            add, finish = load_kernels(code, _KERNELS)
        except (CompileError, DriverError):
            return None
    return CudaBackend(index, add, finish, _BLOCKS_PER_PROCESSOR * properties.multi_processor_count)


@dataclass(frozen=True)
class _Table:
    """What the kernels are told of some tensors.

    Args:
        tensors: those that they read, kept until the kernels have ended.
        words: for each tensor its address, bytes, dtype code, dimensions and the index of its first size;
            for each the number of units before it, and the number of all; all sizes.
        units: how many pieces of work there are.
    """

    tensors: list[torch.Tensor]
    words: array[int]
    units: int


class CudaBackend:
    """Digests what lies on one GPU.

    Args:
        index: of the device.
        add: adds the blocks of all tensors to their sums.
        finish: closes the digests.
        max_blocks: how many thread blocks a launch has at most.
    """

    name = "cuda"

    def __init__(self, index: int, add: Kernel, finish: Kernel, max_blocks: int) -> None:
        self._device = torch.device("cuda", index)
        self._add, self._finish = add, finish
        self._max_blocks = max_blocks

    def digest_tensors(self, tensors: Sequence[torch.Tensor]) -> bytes:
        """See `Backend`."""
        if not tensors:
            return b""
        with torch.no_grad(), torch.cuda.device(self._device):
            return self._run(_table([_in_order(tensor) for tensor in tensors]))

    def _run(self, table: _Table) -> bytes:
        count = len(table.tensors)
        words = _pinned(len(table.words))
        ctypes.memmove(words.data_ptr(), table.words.buffer_info()[0], 8 * len(table.words))
        words = words.to(self._device, non_blocking=True)
        sums = torch.zeros(count * _WORDS_OF_SUMS, dtype=torch.int64, device=self._device)
        out = _pinned(2 * count)
        tensors, units, sizes = (words.data_ptr() + 8 * at for at in (0, 5 * count, 6 * count + 1))
        stream = torch.cuda.current_stream()
        blocks = max(1, min(table.units, self._max_blocks))
        number = ctypes.c_ulonglong(count)
        if table.units:
            arguments = (_address(tensors), _address(units), number, _address(sums.data_ptr()))
            self._add.launch(blocks, _THREADS, arguments, stream.cuda_stream)
        results = (
            _address(tensors),
            _address(sizes),
            number,
            _address(sums.data_ptr()),
            _address(out.data_ptr()),
        )
        self._finish.launch(-(-count // _FINISHING_THREADS), _FINISHING_THREADS, results, stream.cuda_stream)
        stream.synchronize()
        return out.numpy().tobytes()


def _pinned(size: int) -> torch.Tensor:
    """Return memory of the host that the device can read and write, while it goes on."""
    return torch.empty(size, dtype=torch.int64, device="cpu", pin_memory=True)


def _address(value: int) -> ctypes.c_void_p:
    return ctypes.c_void_p(value)


def _in_order(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor whose memory holds the logical contents in order."""
    if tensor.is_neg() or tensor.is_conj():
        tensor = tensor.resolve_conj().resolve_neg()
    return tensor if tensor.is_contiguous() else tensor.contiguous()


def _table(tensors: list[torch.Tensor]) -> _Table:
    rows: list[int] = []
    units = [0]
    sizes: list[int] = []
    for tensor in tensors:
        shape = tensor.shape
        n_bytes = tensor.numel() * tensor.element_size()
        rows += (tensor.data_ptr(), n_bytes, _CODES[tensor.dtype], len(shape), len(sizes))
        sizes += shape
        units.append(units[-1] + -(-n_bytes // _UNIT))
    return _Table(tensors, array("q", [*rows, *units, *sizes]), units[-1])
