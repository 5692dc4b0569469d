"""Digests of many tensors at once: one native call when all are in CPU memory, a way for everything else."""

from __future__ import annotations

import ctypes
from array import array
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from samebits._text.wording import with_article
from samebits.digest import _definition as d
from samebits.digest import _torch_backend, native
from samebits.digest._parts import absent_digest, has_contents, parts_of, readable
from samebits.digest.native import open_reader
from samebits.errors import SamebitsError

if TYPE_CHECKING:
    from collections.abc import Sequence

# Bits of a header word that the C library ignores: dtypes that have lazily negated, conjugated views.
_NEGATABLE = 1 << 13
_CONJUGABLE = 1 << 14
_STRIDED = d.STRIDED

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


def _load() -> native.NativeLibrary | None:
    library = native.load()
    entry = native.openmp_entry(Path(torch.__file__).parent / "lib") if library is not None else None
    if library is not None and entry is not None:
        library.share_threads(entry)
    return library


_LIBRARY = _load()
_READER = open_reader(_LIBRARY)


def backend_name() -> str:
    """`avx512`, `avx2`, `neon`, `scalar`, or `torch` when the C library is not there."""
    return "torch" if _LIBRARY is None else _LIBRARY.isa().decode()


def digest_many(tensors: Sequence[torch.Tensor]) -> bytes:
    """The digests of tensors, 16 bytes each, in order.

    Raises:
        SamebitsError: if one of them cannot be read (a tensor inside a `torch.func` transform).
    """
    result = read(tensors)
    if result is None:
        words = describe(tensors)
        result = None if words is None else run_once(words, len(tensors))
    return _digest_mixed(tensors) if result is None else result


def read(tensors: Sequence[torch.Tensor]) -> bytes | None:
    """The digests of plain CPU tensors of common dtypes, by the C module; None where it cannot."""
    if _READER is None:
        return None
    return _READER.digests(tensors if type(tensors) is list else tuple(tensors))


def describe(tensors: Sequence[torch.Tensor]) -> array[int] | None:
    """Descriptors (native/digest.h) of tensors in CPU memory; None if any is something else.

    The hot path of recording, hence one loop without calls of our own.
    """
    if _LIBRARY is None:
        return None
    words: list[int] = []
    add = words.append
    try:
        for t in tensors:
            if type(t) not in _PLAIN_TYPES or not t.is_cpu:
                return None
            header = _HEADERS[t.dtype]
            if header & _NEGATABLE and (t.is_neg() or (header & _CONJUGABLE and t.is_conj())):
                return None
            shape = t.shape
            add(t.data_ptr())
            if t.is_contiguous():
                add(header | len(shape) << 20)
                words += shape
            else:
                add(header | len(shape) << 20 | _STRIDED)
                words += shape
                words += t.stride()
    except (KeyError, RuntimeError):  # quantized; sparse, nested, inside a transform: no address or no sizes
        return None
    return array("Q", words)


def observe(tensors: Sequence[torch.Tensor]) -> tuple[bytes, bytes, bytes]:
    """Digests, a key and storage addresses of tensors; the hot path of recording.

    Args:
        tensors: a list or tuple.

    Returns:
        16 bytes each; a value that is equal for equal dtypes and shapes; 8 bytes each that say where the
        storage begins, 0 for those without contents or without a storage in CPU memory.

    Raises:
        SamebitsError: if one of them cannot be read.
    """
    found = None if _READER is None else _READER.observe(tensors)
    return _observe_plain(tensors) if found is None else found


def _observe_plain(tensors: Sequence[torch.Tensor]) -> tuple[bytes, bytes, bytes]:
    """The same without the C module: one loop without calls of our own."""
    words: list[int] = []
    kinds: list[int] = []
    bases: list[int] = []
    add = words.append
    try:
        for t in tensors:
            if type(t) not in _PLAIN_TYPES or not t.is_cpu:
                return _observe_any(tensors)
            header = _HEADERS[t.dtype]
            if header & _NEGATABLE and (t.is_neg() or (header & _CONJUGABLE and t.is_conj())):
                return _observe_any(tensors)
            shape, address, offset = t.shape, t.data_ptr(), int(t.storage_offset())
            # An empty view has no address of its own, and yet an offset.
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
        digests = run_once(array("Q", words), len(tensors))
    except (KeyError, RuntimeError):  # quantized; sparse, nested, inside a transform: no address or no sizes
        digests = None
    if digests is None:
        return _observe_any(tensors)
    return digests, array("Q", kinds).tobytes(), array("Q", bases).tobytes()


def _observe_any(tensors: Sequence[torch.Tensor]) -> tuple[bytes, bytes, bytes]:
    return digest_many(tensors), repr([*map(_kind, tensors)]).encode(), storage_addresses(tensors)


def _kind(tensor: torch.Tensor) -> tuple[torch.dtype, tuple[int, ...]]:
    try:
        return tensor.dtype, tuple(tensor.shape)
    except RuntimeError:  # nested tensors have no shape
        return tensor.dtype, ()


def storage_addresses(tensors: Sequence[torch.Tensor]) -> bytes:
    """Where the storages begin, 8 bytes each; 0 for those without contents or without one (sparse)."""
    found = None if _READER is None else _READER.bases(tensors if type(tensors) is list else tuple(tensors))
    return array("Q", map(_base, tensors)).tobytes() if found is None else found


def _base(tensor: torch.Tensor) -> int:
    try:
        return tensor.untyped_storage().data_ptr()
    except (NotImplementedError, RuntimeError):
        return 0


def run_once(words: array[int], count: int, threads: int | None = None) -> bytes | None:
    """Digests what descriptors describe, overwriting them; None if something has contents but no address."""
    if _LIBRARY is None:
        return None
    status = _LIBRARY.digest(words.buffer_info()[0], count)
    if status == 0:
        return words[: 2 * count].tobytes()
    return None if status < 0 else _run_threaded(words, count, array("Q", bytes(16 * count)), threads)


def run_again(words: array[int], count: int) -> bytes | None:
    """As `run_once`, leaving the descriptors as they are."""
    if _LIBRARY is None:
        return None
    out = array("Q", bytes(16 * count))
    status = _LIBRARY.digest_to(words.buffer_info()[0], count, out.buffer_info()[0])
    if status == 0:
        return out.tobytes()
    return None if status < 0 else _run_threaded(words, count, out)


def _run_threaded(words: array[int], count: int, out: array[int], threads: int | None = None) -> bytes | None:
    if _LIBRARY is None:
        return None
    n_threads = torch.get_num_threads() if threads is None else threads
    _LIBRARY.digest_threaded(words.buffer_info()[0], count, out.buffer_info()[0], n_threads)
    return out.tobytes()


def digest_memory(
    address: int, n_bytes: int, code: int = d.DTYPES["uint8"][0], threads: int | None = None
) -> bytes:
    """The digest of CPU memory, that of a tensor uint8[n_bytes] with these contents.

    Args:
        address: where it starts; ignored if `n_bytes` is 0.
        n_bytes: its length.
        code: another dtype code of one byte per element.
        threads: at most that many; by default torch's number.
    """
    result = run_once(array("Q", (address, code | 1 << d.N_DIMS, n_bytes)), 1, threads)
    if result is not None:
        return result
    memory = (ctypes.c_ubyte * n_bytes).from_address(address) if n_bytes else b""
    data = (
        torch.frombuffer(memory, dtype=torch.uint8)
        if n_bytes
        else torch.empty(0, dtype=torch.uint8, device="cpu")
    )
    return d.close(_torch_backend.block_sums([data])[0], n_bytes, code, (n_bytes,))


def digest_bytes(data: bytes, code: int = d.DTYPES["uint8"][0]) -> bytes:
    """The digest of bytes, that of a tensor uint8[len(data)] with these contents."""
    return digest_memory(ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p).value or 0, len(data), code)


def composite(tag: str, parts: bytes) -> bytes:
    """The digest of something that consists of parts: a tag that says what it is, their digests in order."""
    return digest_bytes(tag.encode("utf-8", "surrogatepass") + b"\0" + parts, d.COMPOSITE)


def _digest_mixed(tensors: Sequence[torch.Tensor]) -> bytes:
    """Digests of tensors of any kind."""
    results = [b""] * len(tensors)
    by_device: dict[torch.device, list[tuple[int, torch.Tensor]]] = {}
    for position, tensor in enumerate(tensors):
        found = _read(tensor)
        if isinstance(found, bytes):
            results[position] = found
        else:
            by_device.setdefault(found.device, []).append((position, found))
    for device, members in by_device.items():
        digests = _digest_strided(device, [tensor for _, tensor in members])
        for i, (position, _) in enumerate(members):
            results[position] = digests[16 * i : 16 * i + 16]
    return b"".join(results)


def _read(tensor: torch.Tensor) -> bytes | torch.Tensor:
    """The digest of a tensor without contents or of several parts; for any other, a tensor to read."""
    try:
        if not has_contents(tensor):
            return absent_digest(tensor)
        parts = parts_of(tensor)
        return readable(tensor) if parts is None else composite(parts.tag, digest_many(parts.tensors))
    except RuntimeError as error:
        raise _unreadable(tensor) from error


def _digest_strided(device: torch.device, tensors: list[torch.Tensor]) -> bytes:
    """Digests of strided tensors of one device, of any class, lazily negated or conjugated views too."""
    if device.type != "cpu" or _LIBRARY is None:
        return _torch_backend.digest_many(tensors)
    results = []
    for tensor in tensors:
        lazy = tensor.is_neg() or tensor.is_conj()
        digest = None if lazy else run_once(_descriptor(tensor), 1)
        results.append(_torch_backend.digest_many([tensor]) if digest is None else digest)
    return b"".join(results)


def _descriptor(tensor: torch.Tensor) -> array[int]:
    header = _HEADERS[tensor.dtype] | tensor.dim() << d.N_DIMS | d.STRIDED
    return array("Q", (tensor.data_ptr(), header, *tensor.shape, *tensor.stride()))


def _unreadable(tensor: torch.Tensor) -> SamebitsError:
    kind = with_article(type(tensor).__name__)
    return SamebitsError(
        f"the contents of {kind} ({tensor.layout}) cannot be read: a tensor in memory was expected. "
        "Inside a torch.func transform, digest what the transform returns.",
        slug="digest-unreadable",
    )


class DigestPlan:
    """Prepared descriptors of some tensors.

    Before each use it is checked that their memory, dtypes and shapes are still the same; where not (a
    parameter whose `.data` was replaced, a tensor resized), the descriptors are made anew. Not noticed:
    strides that change alone, within the same memory and shape (`square.t_()`).

    Args:
        tensors: of any kind; those that are not plain CPU tensors make the plan as slow as `digest_many`.
    """

    def __init__(self, tensors: Sequence[torch.Tensor]) -> None:
        self._tensors = tuple(tensors)
        self._words: array[int] | None = None
        self._seen: list[object] = []

    def digest(self) -> bytes:
        """16 bytes for each tensor, in order."""
        digests = read(self._tensors)
        if digests is not None:
            return digests
        words = self._words
        if words is None or self._look() != self._seen:
            words = self._prepare()
        result = None if words is None else run_again(words, len(self._tensors))
        return digest_many(self._tensors) if result is None else result

    def _look(self) -> list[object]:
        return [x for t in self._tensors for x in (t.data_ptr(), t.dtype, t.shape)]

    def _prepare(self) -> array[int] | None:
        self._words = describe(self._tensors)
        self._seen = [] if self._words is None else self._look()
        return self._words
