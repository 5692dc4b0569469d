"""The digest on a GPU of NVIDIA: many tensors in one launch, read where they lie (native/cuda/digest.cu).

The kernels run on torch's current stream, after the work that computes the tensors. 16 bytes for each tensor
reach the host, which waits for them when they are read. Until then the stream keeps the order: memory that is
freed or written to after the launch is so on that stream, or on one that waits for it.
"""

from __future__ import annotations

import ctypes
import functools
import struct
import threading
from array import array
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from samebits._cuda.driver import DriverError
from samebits._cuda.loading import load_unit
from samebits._cuda.nvrtc import CompileError
from samebits._cuda.units import DIGEST
from samebits._torch.cuda_stream import stream_handle
from samebits.digest import _definition as d
from samebits.digest import native
from samebits.digest.pending import pending

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from samebits._cuda.driver import Kernel
    from samebits._reader import Reader
    from samebits.digest.pending import Digests, PendingDigests

# As native/cuda/digest_body.h has them.
_UNIT = 64 * d.BLOCK
_THREADS = 256
_WORDS_OF_SUMS = 2 * d.SUMS
_KERNELS = ("digest_2x1", "digest_finish")
_FIELDS = 5

_BLOCKS_PER_PROCESSOR = 8
_FINISHING_THREADS = 64
_PLAIN_TYPES = frozenset((torch.Tensor, torch.nn.Parameter))
_DLPACK_CUDA = 2
_WORD = struct.Struct("=q")
_CODES = {getattr(torch, name): code for name, (code, _) in d.DTYPES.items() if hasattr(torch, name)}


def open_backend(device: torch.device) -> CudaBackend | None:
    """Return the backend of a device; None where the kernels cannot be compiled or loaded."""
    opened = _open(torch.cuda.current_device() if device.index is None else device.index)
    return opened if isinstance(opened, CudaBackend) else None


def without_kernels(index: int) -> str:
    """Return why digests on a device are computed by torch's operations; empty if by the kernels.

    Args:
        index: of the device.
    """
    opened = _open(index)
    return "" if isinstance(opened, CudaBackend) else opened


@functools.cache
def _open(index: int) -> CudaBackend | str:
    if torch.version.cuda is None:
        return "they are for CUDA, and this torch is built for ROCm"
    with torch.cuda.device(index):
        properties = torch.cuda.get_device_properties(index)
        torch.cuda.current_stream().synchronize()  # makes the context current
        try:
            capability = (properties.major, properties.minor)
            module = load_unit(DIGEST, capability, torch.version.cuda)
            add, finish = map(module.kernel, _KERNELS)
        except (CompileError, DriverError) as error:
            return str(error)
    library = native.load()
    reader = None if library is None else native.open_reader(library)
    return CudaBackend(index, (add, finish), _BLOCKS_PER_PROCESSOR * properties.multi_processor_count, reader)


@dataclass(frozen=True)
class _Table:
    """What the kernels are told of some tensors, in memory of the device.

    Args:
        words: for each tensor its address, bytes, dtype code, dimensions and the index of its first size;
            for each the number of units before it, and the number of all; all sizes.
        sums: room for those of each tensor.
        count: how many tensors there are.
        units: how many pieces of work there are.
    """

    words: torch.Tensor
    sums: torch.Tensor
    count: int
    units: int


class _Rows:
    """The words of a table, tensor by tensor."""

    def __init__(self) -> None:
        self._rows: list[int] = []
        self._sizes: list[int] = []
        self._units = [0]

    def add(self, address: int, n_bytes: int, code: int, shape: tuple[int, ...]) -> None:
        """Add a tensor whose contents lie in order.

        Args:
            address: where they begin.
            n_bytes: how many there are.
            code: of the dtype.
            shape: of the tensor.
        """
        self._rows += (address, n_bytes, code, len(shape), len(self._sizes))
        self._sizes += shape
        self._units.append(self._units[-1] + -(-n_bytes // _UNIT))

    def words(self) -> bytes:
        """Return all words, as the kernels read them."""
        return array("q", [*self._rows, *self._units, *self._sizes]).tobytes()


def _table(words: bytes, count: int, device: torch.device) -> _Table:
    """Return the table of that many tensors, on its way to the device."""
    pinned = _pinned(len(words) // 8)
    ctypes.memmove(pinned.data_ptr(), words, len(words))
    return _Table(
        words=pinned.to(device, non_blocking=True),
        sums=torch.empty(count * _WORDS_OF_SUMS, dtype=torch.int64, device=device),
        count=count,
        units=_WORD.unpack_from(words, _WORD.size * (_FIELDS + 1) * count)[0],
    )


class _Launch:
    """Digests that the kernels compute.

    Args:
        out: room for them, in memory of the host that the device can write; kept until they are there.
    """

    def __init__(self, out: torch.Tensor) -> None:
        cuda: Any = torch.cuda
        self._done = cuda.Event()
        self._done.record()
        self._out = out
        self._place = out.data_ptr(), out.numel() * out.element_size()

    def read(self) -> bytes:
        """See `pending.Source`. No op of torch is called: it would be seen as one of the script's."""
        self._done.synchronize()
        return ctypes.string_at(*self._place)

    def can_wait(self) -> bool:
        """See `pending.Source`."""
        return not torch.cuda.is_current_stream_capturing()

    def has_ended(self) -> bool:
        """Tell whether the kernels have written all."""
        return bool(self._done.query())


class CudaBackend:
    """Digests what lies on one GPU.

    Args:
        index: of the device.
        kernels: the one that adds the blocks of all tensors to their sums, the one that closes the digests.
        max_blocks: how many thread blocks a launch has at most.
        reader: reads plain tensors without calls of Python; None where there is none.
    """

    name = "cuda"

    def __init__(
        self, index: int, kernels: tuple[Kernel, Kernel], max_blocks: int, reader: Reader | None = None
    ) -> None:
        self._index, self._device = index, torch.device("cuda", index)
        self._add, self._finish = kernels
        self._max_blocks = max_blocks
        self._reader = reader
        self._running: deque[_Launch] = deque()
        self._lock = threading.RLock()

    def digest_tensors(self, tensors: Sequence[torch.Tensor]) -> Digests:
        """See `Backend`."""
        if not tensors:
            return b""
        rows = _Rows()
        with torch.no_grad(), torch.cuda.device(self._index):
            kept = [_in_order(tensor) for tensor in tensors]  # until the kernels are on the stream
            for t in kept:
                rows.add(t.data_ptr(), t.numel() * t.element_size(), _CODES[t.dtype], t.shape)
            return pending(self._launch(_table(rows.words(), len(kept), self._device)), len(kept))

    def digest_plain(self, tensors: Sequence[torch.Tensor]) -> bytes | None:
        """See `Backend`."""
        seen = self.observe_plain(tensors)
        return None if seen is None else seen[0].read()

    def observe_plain(self, tensors: Sequence[torch.Tensor]) -> tuple[PendingDigests, bytes, bytes] | None:
        """See `Backend`."""
        described = self._described(tensors)
        if described is None:
            return None
        words, kinds, bases = described
        with torch.no_grad(), torch.cuda.device(self._index):
            launch = self._launch(_table(words, len(tensors), self._device))
        return pending(launch, len(tensors)), kinds, bases

    def prepare(self, tensors: tuple[torch.Tensor, ...]) -> Callable[[], Digests | None]:
        """See `Backend`."""
        return _Prepared(self, tensors).digest

    def words_of(self, tensors: Sequence[torch.Tensor]) -> bytes | None:
        """Return what the kernels are told; None if some are not plain or their contents not in order."""
        described = self._described(tensors)
        return None if described is None else described[0]

    def make_table(self, words: bytes, count: int) -> _Table:
        """Return the table that holds those words of that many tensors."""
        with torch.no_grad(), torch.cuda.device(self._index):
            return _table(words, count, self._device)

    def digest_table(self, table: _Table) -> PendingDigests:
        """Return 16 bytes for each tensor of a table."""
        with torch.no_grad(), torch.cuda.device(self._index):
            return pending(self._launch(table), table.count)

    def stream(self) -> int:
        """Return the handle of the stream on which kernels would run now."""
        return stream_handle(self._index)

    def _described(self, tensors: Sequence[torch.Tensor]) -> tuple[bytes, bytes, bytes] | None:
        """Return the words of plain tensors, a key of dtypes and shapes, and where the storages begin.

        A hot path of recording. Tensors that the reader leaves to Python are looked at once more.
        """
        listed = tensors if type(tensors) in (list, tuple) else list(tensors)
        read = None if self._reader is None else self._reader.rows(listed, _DLPACK_CUDA, self._index, _UNIT)
        return self._described_here(listed) if read is None else read

    def _described_here(self, tensors: Sequence[torch.Tensor]) -> tuple[bytes, bytes, bytes] | None:
        rows = _Rows()
        kinds: list[int] = []
        bases: list[int] = []
        try:
            for t in tensors:
                code = _CODES.get(t.dtype)
                if type(t) not in _PLAIN_TYPES or code is None or t.get_device() != self._index:
                    return None
                address, shape = t.data_ptr(), t.shape
                if not t.is_contiguous() or t.is_neg() or t.is_conj() or t._is_zerotensor():
                    return None
                if not address and t.numel():
                    return None
                width = t.element_size()
                rows.add(address, t.numel() * width, code, shape)
                kinds += (code, len(shape), *shape)
                bases.append(address - int(t.storage_offset()) * width if address else 0)
        except RuntimeError:  # sparse, nested, in a transform: no address or no sizes
            return None
        return rows.words(), array("q", kinds).tobytes(), array("q", bases).tobytes()

    def _launch(self, table: _Table) -> _Launch:
        out = _pinned(2 * table.count)
        with self._lock:  # a table may be that of several threads
            self._start(table, out.data_ptr())
            launch = _Launch(out)
            while self._running and self._running[0].has_ended():
                self._running.popleft()
            self._running.append(launch)
        return launch

    def _start(self, table: _Table, out: int) -> None:
        sums, words, count = table.sums.zero_(), table.words.data_ptr(), table.count
        tensors, units, sizes = (words + 8 * at for at in (0, _FIELDS * count, (_FIELDS + 1) * count + 1))
        stream = self.stream()
        number, total = ctypes.c_ulonglong(count), _address(sums.data_ptr())
        if table.units:
            arguments = (_address(tensors), _address(units), number, total)
            self._add.launch((min(table.units, self._max_blocks), 1, 1), (_THREADS, 0), arguments, stream)
        results = (_address(tensors), _address(sizes), number, total, _address(out))
        blocks = -(-count // _FINISHING_THREADS)
        self._finish.launch((blocks, 1, 1), (_FINISHING_THREADS, 0), results, stream)


class _Prepared:
    """The table of some tensors, made anew when their memory, dtypes or shapes or the stream changed."""

    def __init__(self, backend: CudaBackend, tensors: tuple[torch.Tensor, ...]) -> None:
        self._backend, self._tensors = backend, tensors
        self._made: tuple[_Table, bytes, int] | None = None  # with the words and the stream that it is for

    def digest(self) -> Digests | None:
        """Return 16 bytes for each tensor; None where one is not a plain one of the device."""
        if torch.cuda.is_current_stream_capturing():
            return None
        words = self._backend.words_of(self._tensors)
        if words is None:
            return None
        made_for = words, self._backend.stream()
        made = self._made
        if made is None or made[1:] != made_for:
            self._made = made = (self._backend.make_table(words, len(self._tensors)), *made_for)
        return self._backend.digest_table(made[0])


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
