"""Digests that a GPU is still computing: joined and cut as bytes are, and waited for when they are read.

So a step need not wait for the digests that are recorded in it. Importing this does not import torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias, TypeGuard

if TYPE_CHECKING:
    from collections.abc import Iterable


class Source(Protocol):
    """**Protocol:** a launch whose results will be in memory of the host."""

    def read(self) -> bytes:
        """Wait, and return all its digests; the same each time."""

    def can_wait(self) -> bool:
        """Tell whether this thread may wait now: not while it captures a graph."""


class _Piece(NamedTuple):
    source: Source
    start: int
    stop: int

    def follows(self, other: _Piece) -> bool:
        return self.source is other.source and self.start == other.stop


class PendingDigests:
    """Digests, 16 bytes each, of which some are still computed.

    Args:
        parts: in order: digests that are known, and pieces of what a source gives.
    """

    __slots__ = ("_parts",)

    def __init__(self, parts: tuple[bytes | _Piece, ...]) -> None:
        self._parts = parts

    def __len__(self) -> int:
        return sum(_length(part) for part in self._parts)

    def __add__(self, other: Digests) -> Digests:
        return join((self, other))

    def __radd__(self, other: bytes) -> Digests:
        return join((other, self))

    def __getitem__(self, wanted: slice) -> Digests:
        start, stop, _ = wanted.indices(len(self))
        cut: list[bytes | _Piece] = []
        for part in self._parts:
            size = _length(part)
            first, last = max(start, 0), min(stop, size)
            if first < last:
                cut.append(_cut(part, first, last))
            start, stop = start - size, stop - size
        return _joined(cut)

    def read(self) -> bytes:
        """Wait for all of them, and return them.

        Raises:
            RuntimeError: the device failed (torch's `AcceleratorError` since 2.9).
        """
        return b"".join(
            part if isinstance(part, bytes) else part.source.read()[part.start : part.stop]
            for part in self._parts
        )

    def can_wait(self) -> bool:
        """Tell whether this thread may wait for them now."""
        return all(isinstance(part, bytes) or part.source.can_wait() for part in self._parts)


Digests: TypeAlias = "bytes | PendingDigests"
"""16 bytes each; read them by `read`."""


def pending(source: Source, count: int) -> PendingDigests:
    """Return the digests that a source will give.

    Args:
        source: of all of them.
        count: how many there are.
    """
    return PendingDigests((_Piece(source, 0, 16 * count),))


def read(digests: Digests) -> bytes:
    """Return digests; those that are still computed are waited for.

    Raises:
        RuntimeError: the device failed.
    """
    return digests.read() if isinstance(digests, PendingDigests) else digests


def is_pending(digests: Digests) -> TypeGuard[PendingDigests]:
    """Tell whether some of them are still to be read."""
    return isinstance(digests, PendingDigests)


def join(parts: Iterable[Digests]) -> Digests:
    """Return digests one after the other."""
    pieces: list[bytes | _Piece] = []
    for part in parts:
        pieces += (part,) if isinstance(part, bytes) else part._parts
    return _joined(pieces)


def _joined(pieces: Iterable[bytes | _Piece]) -> Digests:
    merged: list[bytes | _Piece] = []
    known: list[bytes] = []
    for piece in pieces:
        if isinstance(piece, bytes):
            known += (piece,) if piece else ()
            continue
        if known:
            merged.append(b"".join(known))
            known = []
        last = merged[-1] if merged else None
        if isinstance(last, _Piece) and piece.follows(last):
            merged[-1] = last._replace(stop=piece.stop)
        else:
            merged.append(piece)
    if not merged:
        return b"".join(known)
    return PendingDigests((*merged, b"".join(known)) if known else tuple(merged))


def _length(part: bytes | _Piece) -> int:
    return len(part) if isinstance(part, bytes) else part.stop - part.start


def _cut(part: bytes | _Piece, first: int, last: int) -> bytes | _Piece:
    if isinstance(part, bytes):
        return part[first:last]
    return part._replace(start=part.start + first, stop=part.start + last)
