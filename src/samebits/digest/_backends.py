"""The interface of the backends that compute digests (docs/reference/digest.md), and the choice by device."""

from __future__ import annotations

import functools
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

from samebits.digest import _cuda_backend, _native_backend
from samebits.digest._torch_backend import TorchBackend

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from torch import Tensor, device

    from samebits.digest.pending import Digests


class Backend(Protocol):
    """Computes the digests of tensors on one kind of device."""

    @property
    def name(self) -> str:
        """The name that a report shows."""

    def digest_tensors(self, tensors: Sequence[Tensor]) -> Digests:
        """Return 16 bytes for each tensor.

        All are strided, have contents and lie on one device. They are of any class, and may be lazily negated
        or conjugated views.
        """

    def digest_plain(self, tensors: Sequence[Tensor]) -> bytes | None:
        """Return 16 bytes for each tensor; None if they are not all plain ones on its device."""

    def observe_plain(self, tensors: Sequence[Tensor]) -> tuple[Digests, bytes, bytes] | None:
        """Return what `tensors.observe_later` does; None as `digest_plain`."""

    def prepare(self, tensors: tuple[Tensor, ...]) -> Callable[[], Digests | None]:
        """Return a function that digests the same tensors each time; it returns None as `digest_plain`."""


class PlainReader(Protocol):
    """Reads lists and tuples of plain tensors of common dtypes in CPU memory; returns None for any others."""

    def digests(self, tensors: Sequence[Tensor], /) -> bytes | None:
        """Return 16 bytes for each tensor."""

    def observe(self, tensors: Sequence[Tensor], /) -> tuple[bytes, bytes, bytes] | None:
        """Return what `tensors.observe` does."""

    def bases(self, tensors: Sequence[Tensor], /) -> bytes | None:
        """Return what `tensors.storage_addresses` does."""


class CpuBackend(Backend, Protocol):
    """Also digests what is not a tensor."""

    @property
    def reader(self) -> PlainReader:
        """The fastest way, to be tried first."""

    def observe_plain(self, tensors: Sequence[Tensor]) -> tuple[bytes, bytes, bytes] | None:
        """Return what `tensors.observe` does; None as `digest_plain`."""

    def digest_memory(self, address: int, n_bytes: int, code: int, threads: int | None) -> bytes:
        """Do what `tensors.digest_memory` does."""

    def digest_array(self, contents: Any, dtype: str) -> bytes:
        """Return the digest of a NumPy array in native byte order whose strides are whole elements."""


@functools.cache
def cpu_backend() -> CpuBackend:
    """Return the C library, or torch operations where it cannot be used.

    Raises:
        SamebitsError: as `native.load`.
    """
    return _native_backend.open_backend() or TorchBackend()


# By type of device: returns None where this installation or machine cannot use the backend.
_DEVICES: Mapping[str, Callable[[device], Backend | None]] = MappingProxyType(
    {"cpu": lambda _: cpu_backend(), "cuda": _cuda_backend.open_backend}
)


def backend_of(device: device) -> Backend:
    """Return the backend of a device: torch operations where it has no other."""
    opened = _DEVICES[device.type](device) if device.type in _DEVICES else None
    return opened or TorchBackend()
