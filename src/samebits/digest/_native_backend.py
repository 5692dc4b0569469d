"""The C library (native/digest.h) as a backend: from tensors to descriptors."""

from __future__ import annotations

from array import array
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from samebits.digest import _definition as d
from samebits.digest import native
from samebits.digest._torch_backend import NoReader, TorchBackend

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from samebits.digest._backends import PlainReader

# Bits of a header word that the C library ignores: dtypes that have lazily negated, conjugated views.
_NEGATABLE = 1 << 13
_CONJUGABLE = 1 << 14
_STRIDED = d.STRIDED
_ONE_DIM = 1 << d.N_DIMS
_MALFORMED = -1 << 63
# Tensors that stand for zeros have no memory: their address is an offset (bindings/reader.h).
_LOW = 1 << 32

_PLAIN_TYPES = frozenset((torch.Tensor, torch.nn.Parameter))


def _headers() -> dict[torch.dtype, int]:
    known = {getattr(torch, name): d.header(name) for name in d.DTYPES if hasattr(torch, name)}
    return {
        dtype: header
        | (_NEGATABLE if dtype.is_floating_point or dtype.is_complex else 0)
        | (_CONJUGABLE if dtype.is_complex else 0)
        for dtype, header in known.items()
    }


_HEADERS = _headers()


def open_backend() -> NativeBackend | None:
    """Return the backend of this process, on torch's threads; None where the C library cannot be used.

    Raises:
        SamebitsError: as `native.load`.
    """
    library = native.load()
    if library is None:
        return None
    parallel = native.openmp_entry(Path(torch.__file__).parent / "lib")
    if parallel is not None:
        library.share_threads(parallel)
    return NativeBackend(library, native.open_reader(library) or NoReader())


class NativeBackend:
    """Digests what is in CPU memory.

    Args:
        library: computes the digests.
        reader: reads plain tensors without calls of Python.
    """

    def __init__(self, library: native.NativeLibrary, reader: PlainReader) -> None:
        self.reader = reader
        self._library = library
        self._in_place = library.digest

    @property
    def name(self) -> str:
        """The instruction set in use."""
        return self._library.isa().decode()

    def digest_plain(self, tensors: Sequence[torch.Tensor]) -> bytes | None:
        """See `CpuBackend`."""
        descriptors = self.describe(tensors)
        return None if descriptors is None else self._digest(descriptors, len(tensors))

    def prepare(self, tensors: tuple[torch.Tensor, ...]) -> Callable[[], bytes | None]:
        """See `CpuBackend`."""
        return _Prepared(self, tensors).digest

    def describe(self, tensors: Sequence[torch.Tensor]) -> array[int] | None:
        """Return descriptors (native/digest.h) of plain tensors in CPU memory; None if any is something else.

        A hot path of recording, hence one loop without function calls of samebits.
        """
        words: list[int] = []
        add = words.append
        try:
            for t in tensors:
                if type(t) not in _PLAIN_TYPES or not t.is_cpu:
                    return None
                header = _HEADERS[t.dtype]
                if header & _NEGATABLE and (t.is_neg() or (header & _CONJUGABLE and t.is_conj())):
                    return None
                shape, address = t.shape, t.data_ptr()
                if address < _LOW and t._is_zerotensor():
                    return None
                add(address)
                if t.is_contiguous():
                    add(header | len(shape) << 20)
                    words += shape
                else:
                    add(header | len(shape) << 20 | _STRIDED)
                    words += shape
                    words += t.stride()
        except (KeyError, RuntimeError):  # quantized; sparse, nested, in a transform: no address or no sizes
            return None
        return array("Q", words)

    def observe_plain(self, tensors: Sequence[torch.Tensor]) -> tuple[bytes, bytes, bytes] | None:
        """See `CpuBackend`: one loop, as in `describe`."""
        words: list[int] = []
        kinds: list[int] = []
        bases: list[int] = []
        add = words.append
        try:
            for t in tensors:
                if type(t) not in _PLAIN_TYPES or not t.is_cpu:
                    return None
                header = _HEADERS[t.dtype]
                if header & _NEGATABLE and (t.is_neg() or (header & _CONJUGABLE and t.is_conj())):
                    return None
                shape, address, offset = t.shape, t.data_ptr(), int(t.storage_offset())
                if address < _LOW and t._is_zerotensor():
                    return None
                # An empty view has no address, and yet an offset.
                bases.append(address - (offset << (header >> 8 & 15)) & d.MASK if offset else address)
                add(address)
                header |= len(shape) << 20
                kinds.append(header)
                kinds += shape
                if t.is_contiguous():
                    add(header)
                    words += shape
                else:
                    add(header | _STRIDED)
                    words += shape
                    words += t.stride()
        except (KeyError, RuntimeError):  # quantized; sparse, nested, in a transform: no address or no sizes
            return None
        digests = self._digest(array("Q", words), len(tensors))
        if digests is None:
            return None
        return digests, array("Q", kinds).tobytes(), array("Q", bases).tobytes()

    def digest_tensors(self, tensors: Sequence[torch.Tensor]) -> bytes:
        """See `Backend`."""
        return b"".join(map(self._digest_tensor, tensors))

    def _digest_tensor(self, tensor: torch.Tensor) -> bytes:
        lazy = tensor.is_neg() or tensor.is_conj()
        digest = None if lazy else self._digest(_descriptor(tensor), 1)
        return TorchBackend().digest_tensors([tensor]) if digest is None else digest

    def digest_memory(self, address: int, n_bytes: int, code: int, threads: int | None) -> bytes:
        """See `CpuBackend`."""
        words = array("Q", (address, code | _ONE_DIM, n_bytes))
        status = self._in_place(words.buffer_info()[0], 3, 1)
        return words[:2].tobytes() if status == 0 else self._digest_known(status, words, threads)

    def digest_array(self, contents: Any, dtype: str) -> bytes:
        """See `CpuBackend`."""
        width = d.DTYPES[dtype][1]
        header = d.header(dtype) | contents.ndim << d.N_DIMS | _STRIDED
        words = array("Q", (contents.ctypes.data, header, *contents.shape))
        words.extend(stride // width & d.MASK for stride in contents.strides)
        status = self._in_place(*words.buffer_info(), 1)
        return words[:2].tobytes() if status == 0 else self._digest_known(status, words, None)

    def _digest_known(self, status: int, descriptors: array[int], threads: int | None) -> bytes:
        """Finish the digest of memory whose address is known, given the status of the first call."""
        digest = self._digest_rest(status, descriptors, 1, threads)
        if digest is None:
            raise ValueError("there is nothing at address 0")
        return digest

    def _digest(self, descriptors: array[int], count: int) -> bytes | None:
        """Return digests, overwriting the descriptors; None if something has contents but no address."""
        status = self._in_place(*descriptors.buffer_info(), count)
        if status:
            return self._digest_rest(status, descriptors, count, None)
        return descriptors[: 2 * count].tobytes()

    def digest_described(self, descriptors: array[int], count: int) -> bytes | None:
        """Return the digests that descriptors ask for, and leave these as they are; None as in `_digest`."""
        out = array("Q", bytes(16 * count))
        status = self._library.digest_to(*descriptors.buffer_info(), count, out.buffer_info()[0])
        return out.tobytes() if status == 0 else self._digest_rest(status, descriptors, count, None)

    def _digest_rest(
        self, status: int, descriptors: array[int], count: int, threads: int | None
    ) -> bytes | None:
        """Finish a call that did not digest, given its status."""
        if status == _MALFORMED:
            raise ValueError(f"{len(descriptors)} words are not the descriptors of {count} tensors")
        if status < 0:
            return None
        out = array("Q", bytes(16 * count))
        n_threads = torch.get_num_threads() if threads is None else threads
        self._library.digest_threaded(*descriptors.buffer_info(), count, out.buffer_info()[0], n_threads)
        return out.tobytes()


class _Prepared:
    """The descriptors of some tensors, made anew when their memory, dtypes or shapes changed."""

    def __init__(self, backend: NativeBackend, tensors: tuple[torch.Tensor, ...]) -> None:
        self._backend, self._tensors = backend, tensors
        self._descriptors: array[int] | None = None
        self._seen: list[object] = []

    def digest(self) -> bytes | None:
        """Return 16 bytes for each tensor; None where one is not a plain one in CPU memory."""
        digests = self._backend.reader.digests(self._tensors)
        if digests is not None:
            return digests
        descriptors = self._descriptors
        if descriptors is None or self._layout() != self._seen:
            descriptors = self._prepare()
        if descriptors is None:
            return None
        return self._backend.digest_described(descriptors, len(self._tensors))

    def _layout(self) -> list[object]:
        return [x for t in self._tensors for x in (t.data_ptr(), t.dtype, t.shape)]

    def _prepare(self) -> array[int] | None:
        self._descriptors = self._backend.describe(self._tensors)
        self._seen = [] if self._descriptors is None else self._layout()
        return self._descriptors


def _descriptor(tensor: torch.Tensor) -> array[int]:
    header = _HEADERS[tensor.dtype] | tensor.dim() << d.N_DIMS | _STRIDED
    return array("Q", (tensor.data_ptr(), header, *tensor.shape, *tensor.stride()))
