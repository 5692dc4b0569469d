"""Files that a recorded process appends to without holding a descriptor.

The script may close any descriptor of its process (`os.closerange(3, 64)`, a double `os.close`, what a daemon
does first) and open files of its own, which then get the same numbers. What was written through a descriptor
that is held would end up in the user's files. So none is held: each piece is written in one call, which opens
the file by its path, sees that it is the very file that was made here, appends to it and closes it. Device
and inode do not tell that alone: the next file that is made may get the inode of one that was removed.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING, Any, TypeAlias

from samebits._runtime.interruptions import is_from_outside, pass_on
from samebits._text import files

if TYPE_CHECKING:
    from collections.abc import Callable

TRANSIENT = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN})
"""Errors after which the same piece may succeed later: nothing of it was written."""

Identity: TypeAlias = "tuple[int, int, int, bytes]"
"""Device, inode, size and first bytes of a file."""

_HEAD_BYTES = 32
_FLAGS = os.O_RDWR | os.O_APPEND
for _name in ("O_NOFOLLOW", "O_NONBLOCK", "O_NOCTTY", "O_BINARY", "O_CLOEXEC"):
    _FLAGS |= getattr(os, _name, 0)


class AppendedFile:
    """A new file that only grows, by whole pieces.

    Args:
        path: absolute; nothing may be there yet.

    Raises:
        OSError: it cannot be made.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        descriptor = files.create(path)
        try:
            made = os.fstat(descriptor)
        finally:
            os.close(descriptor)
        self._path = os.fspath(path)
        self._device, self._inode = made.st_dev, made.st_ino
        self._size, self._head = 0, b""
        # Bound now: the script may replace what `os` has.
        self._append = _append_in_one_call()

    def append(self, data: bytes) -> None:
        """Append a piece, all of it or nothing.

        Raises:
            OSError: it was not written; `TRANSIENT` has the errors after which trying again makes sense.
        """
        head, size = self._head or data[:_HEAD_BYTES], self._size + len(data)
        try:
            error = self._append(self._path, (self._device, self._inode, self._size, self._head), data)
        except BaseException:  # a signal handler raised: maybe when all was written
            if self._has_grown_to(size):
                self._head, self._size = head, size
            raise
        if error:
            raise OSError(error, _reason(error))
        self._head, self._size = head, size

    def _has_grown_to(self, size: int) -> bool:
        try:
            found = os.stat(self._path, follow_symlinks=False)
        except OSError:
            return False
        return (found.st_dev, found.st_ino, found.st_size) == (self._device, self._inode, size)


def emptied(path: str) -> AppendedFile:
    """A file to append to in the place of one that may be there.

    Raises:
        OSError: it cannot be made, or there is something else than a regular file.
    """
    place = os.path.abspath(path)
    if files.refuse_irregular(place):
        os.unlink(place)
    return AppendedFile(place)


def _append_in_one_call() -> Callable[[str, Identity, bytes], int]:
    """The C function, under whose call no other code of the process runs; else its twin in Python."""
    try:
        from samebits import _reader
    except ImportError:
        return append
    one_call: Any = getattr(_reader, "append", None)
    return append if one_call is None or os.name != "posix" else one_call


def append(path: str, identity: Identity, data: bytes) -> int:
    """What `samebits._reader.append` does, as nearly as Python can: 0, or an error number."""
    try:
        descriptor = os.open(path, _FLAGS)
    except OSError as error:
        pass_on(error)
        return error.errno or errno.EIO
    try:
        found = os.fstat(descriptor)
        head = os.read(descriptor, len(identity[3])) if stat.S_ISREG(found.st_mode) else None
        if (found.st_dev, found.st_ino, found.st_size, head) != identity:
            return errno.ESTALE
        return _append_whole(descriptor, found.st_size, data)
    except OSError as error:
        pass_on(error)
        return error.errno or errno.EIO
    finally:
        os.close(descriptor)


def _append_whole(descriptor: int, size: int, data: bytes) -> int:
    rest = memoryview(data)
    try:
        while rest:
            rest = rest[os.write(descriptor, rest) :]
    except BaseException as error:
        os.ftruncate(descriptor, size)
        if not isinstance(error, OSError) or is_from_outside(error):
            raise
        return error.errno or errno.EIO
    return 0


def _reason(error: int) -> str:
    if error == errno.ESTALE:
        return "another file is in its place"
    return os.strerror(error)
