"""Digests of many tensors at once: one call when all are plain ones on one device, else each by its kind."""

from __future__ import annotations

import ctypes
from array import array
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from samebits._text.printable import with_article
from samebits.digest import _definition as d
from samebits.digest._backends import backend_of, cpu_backend
from samebits.digest._parts import absent_digest, has_contents, is_captured, is_plain, parts_of, readable
from samebits.digest.pending import join, read
from samebits.errors import SamebitsError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import torch

    from samebits.digest._backends import Backend
    from samebits.digest.pending import Digests

_CPU = cpu_backend()
_DTYPES = {code: name for name, (code, _) in d.DTYPES.items()}


def backend_name() -> str:
    """Return `avx512`, `avx2`, `neon`, `scalar`, or `torch` when the C library is not there."""
    return _CPU.name


def digest_many(tensors: Sequence[torch.Tensor]) -> bytes:
    """Return the digests of tensors, 16 bytes each, in order.

    Raises:
        SamebitsError: if one of them cannot be read (a tensor inside a `torch.func` transform).
    """
    digests = _CPU.reader.digests(tensors if type(tensors) is list else tuple(tensors))
    if digests is None:
        digests = _backend_of_all(tensors).digest_plain(tensors)
    return read(_digest_mixed(tensors)) if digests is None else digests


def _backend_of_all(tensors: Sequence[torch.Tensor]) -> Backend:
    """Return the backend that may read all of them: that of the first."""
    first = tensors[0] if tensors else None
    return _CPU if first is None or not first.is_cuda or is_captured(first) else backend_of(first.device)


def observe(tensors: Sequence[torch.Tensor]) -> tuple[bytes, bytes, bytes]:
    """Return digests, a key and storage addresses of tensors; the hot path of recording.

    Args:
        tensors: a list or tuple.

    Returns:
        16 bytes each; a value that is equal for equal dtypes and shapes; 8 bytes each that say where the
        storage begins, 0 for those without contents or without a storage in CPU memory.

    Raises:
        SamebitsError: if one of them cannot be read.
    """
    digests, kinds, addresses = observe_later(tensors)
    return read(digests), kinds, addresses


def observe_later(tensors: Sequence[torch.Tensor]) -> tuple[Digests, bytes, bytes]:
    """Do what `observe` does; a GPU may still be computing the digests."""
    seen = _CPU.reader.observe(tensors)
    if seen is not None:
        return seen
    later = _backend_of_all(tensors).observe_plain(tensors)
    if later is None:
        return _digest_mixed(tensors), repr([*map(_kind, tensors)]).encode(), storage_addresses(tensors)
    return later


def kinds_in(key: bytes) -> list[tuple[str, tuple[int, ...]]]:
    """Return the dtypes and shapes that a key stands for, if `observe` could read plain tensors."""
    words = array("Q", key)
    kinds: list[tuple[str, tuple[int, ...]]] = []
    at = 0
    while at < len(words):
        header, n_dims = words[at], words[at] >> d.N_DIMS & 0xFF
        kinds.append((_DTYPES[header & 0xFF], tuple(words[at + 1 : at + 1 + n_dims])))
        at += 1 + n_dims
    return kinds


def _kind(tensor: torch.Tensor) -> tuple[torch.dtype, tuple[int, ...]]:
    try:
        return tensor.dtype, tuple(tensor.shape)
    except RuntimeError:  # nested tensors have no shape
        return tensor.dtype, ()


def storage_addresses(tensors: Sequence[torch.Tensor]) -> bytes:
    """Return where the storages begin, 8 bytes each; 0 for those without contents or without one (sparse)."""
    addresses = _CPU.reader.bases(tensors if type(tensors) is list else tuple(tensors))
    return array("Q", map(_base, tensors)).tobytes() if addresses is None else addresses


def _base(tensor: torch.Tensor) -> int:
    try:
        return tensor.untyped_storage().data_ptr()
    except (NotImplementedError, RuntimeError):
        return 0


def digest_memory(
    address: int, n_bytes: int, code: int = d.DTYPES["uint8"][0], threads: int | None = None
) -> bytes:
    """Return the digest of CPU memory, the same as of a tensor uint8[n_bytes] with these contents.

    Args:
        address: where it starts; ignored if `n_bytes` is 0.
        n_bytes: its length.
        code: another dtype code of one byte per element.
        threads: at most that many; by default torch's number.
    """
    return _CPU.digest_memory(address, n_bytes, code, threads)


def digest_bytes(data: bytes, code: int = d.DTYPES["uint8"][0]) -> bytes:
    """Return the digest of bytes, the same as of a tensor uint8[len(data)] with these contents."""
    return digest_memory(ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p).value or 0, len(data), code)


def composite(tag: str, parts: bytes) -> bytes:
    """Return the digest of a value in parts, from a tag that names its kind and the digests of the parts."""
    return digest_bytes(tag.encode("utf-8", "surrogatepass") + b"\0" + parts, d.COMPOSITE)


def _digest_mixed(tensors: Sequence[torch.Tensor]) -> Digests:
    """Return the digests of tensors of any kind; a GPU may still be computing them."""
    results: list[Digests] = [b""] * len(tensors)
    by_device: dict[torch.device, list[tuple[int, torch.Tensor]]] = {}
    for position, tensor in enumerate(tensors):
        found = tensor if is_plain(tensor) else _read(tensor)
        if isinstance(found, bytes):
            results[position] = found
        else:
            by_device.setdefault(found.device, []).append((position, found))
    for device, members in by_device.items():
        digests = backend_of(device).digest_tensors([tensor for _, tensor in members])
        for i, (position, _) in enumerate(members):
            results[position] = digests[16 * i : 16 * i + 16]
    return join(results)


def _read(tensor: torch.Tensor) -> bytes | torch.Tensor:
    """Return the digest of a tensor without contents or of several parts; for any other, a tensor to read."""
    try:
        if not has_contents(tensor):
            return absent_digest(tensor)
        parts = parts_of(tensor)
        return readable(tensor) if parts is None else composite(parts.tag, digest_many(parts.tensors))
    except RuntimeError as error:
        raise _unreadable(tensor) from error


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
    parameter whose `.data` was replaced, a tensor resized), the descriptors are made again. A change
    of strides alone, with the same memory and shape (`square.t_()`), is not noticed.

    Args:
        tensors: of any kind; those that are not plain tensors make the plan as slow as `digest_many`.
    """

    def __init__(self, tensors: Sequence[torch.Tensor]) -> None:
        self._tensors = tuple(tensors)
        self._digest = _CPU.prepare(self._tensors)
        self._groups: list[_Group] = []

    def digest(self) -> bytes:
        """Return 16 bytes for each tensor, in order."""
        return read(self.begin())

    def begin(self) -> Digests:
        """Return 16 bytes for each tensor, in order; a GPU may still be computing them."""
        digests = self._digest()
        if digests is None and any(tensor.is_cuda for tensor in self._tensors):
            digests = self._by_device()
        return digest_many(self._tensors) if digests is None else digests

    def _by_device(self) -> Digests | None:
        """Return 16 bytes for each tensor; None where some of those on a GPU cannot be read together."""
        if not self._groups:
            self._groups = _groups(self._tensors)
        results: list[Digests] = [b""] * len(self._tensors)
        for group in self._groups:
            digests = group.digest()
            if digests is None:
                self._groups = []
                return None
            if len(self._groups) == 1:
                return digests
            for i, position in enumerate(group.positions):
                results[position] = digests[16 * i : 16 * i + 16]
        return join(results)


@dataclass(frozen=True)
class _Group:
    """Some tensors of a plan.

    Args:
        positions: in the plan.
        digest: gives 16 bytes for each; None where they cannot be read together any more.
    """

    positions: list[int]
    digest: Callable[[], Digests | None]


def _groups(tensors: Sequence[torch.Tensor]) -> list[_Group]:
    """Return the plain tensors of each GPU, and all others together."""
    by_device: dict[torch.device | None, list[int]] = {}
    for position, tensor in enumerate(tensors):
        on_gpu = tensor.is_cuda and is_plain(tensor) and tensor.is_contiguous()
        by_device.setdefault(tensor.device if on_gpu else None, []).append(position)
    return [
        _Group(positions, _prepared(device, tuple(tensors[position] for position in positions)))
        for device, positions in by_device.items()
    ]


def _prepared(device: torch.device | None, tensors: tuple[torch.Tensor, ...]) -> Callable[[], Digests | None]:
    return partial(digest_many, tensors) if device is None else backend_of(device).prepare(tensors)
