"""Files that a recorded process appends to without holding a descriptor.

The script may close any descriptor of its process (`os.closerange(3, 64)`, a double `os.close`, the first
steps of a daemon) and open files of its own, which then get the same numbers. Writing through a descriptor
held here could then end up in the user's files. So none is held: each piece is written in one call, which
opens the file by its path, checks that it is the file made here, appends to it and closes it. Device and
inode are not enough for that check, because a new file may get the inode of a removed one.
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
"""Errors after which the same piece may succeed later, because nothing of it was written."""

Identity: TypeAlias = "tuple[int, int, int, bytes]"
"""Device, inode, size and first bytes of a file."""

_HEAD_BYTES = 32
_FLAGS = os.O_RDWR | os.O_APPEND
for _name in ("O_NOFOLLOW", "O_NONBLOCK", "O_NOCTTY", "O_BINARY", "O_CLOEXEC"):
    _FLAGS |= getattr(os, _name, 0)


class AppendedFile:
    """A new file that grows by whole pieces only.

    Args:
        path: absolute; no file may exist there yet.

    Raises:
        OSError: it cannot be created.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        descriptor = files.create(path)
        try:
            status = os.fstat(descriptor)
        finally:
            os.close(descriptor)
        self._path = os.fspath(path)
        self._device, self._inode = status.st_dev, status.st_ino
        self._size, self._head = 0, b""
        # Bound now: the script may replace functions of `os`.
        self._append = _append_in_one_call()

    def append(self, data: bytes) -> None:
        """Append a piece, all of it or nothing.

        Raises:
            OSError: it was not written; after an error in `TRANSIENT`, trying again makes sense.
        """
        head, size = self._head or data[:_HEAD_BYTES], self._size + len(data)
        try:
            error = self._append(self._path, (self._device, self._inode, self._size, self._head), data)
        except BaseException:  # a signal handler raised, perhaps after everything was written
            if self._has_grown_to(size):
                self._head, self._size = head, size
            raise
        if error:
            raise OSError(error, _reason(error))
        self._head, self._size = head, size

    def _has_grown_to(self, size: int) -> bool:
        try:
            status = os.stat(self._path, follow_symlinks=False)
        except OSError:
            return False
        return (status.st_dev, status.st_ino, status.st_size) == (self._device, self._inode, size)


def emptied(path: str) -> AppendedFile:
    """Return a new file to append to; a file that exists under its path is deleted first.

    Raises:
        OSError: it cannot be created, or the path is not that of a regular file.
    """
    absolute = os.path.abspath(path)
    if files.refuse_irregular(absolute):
        os.unlink(absolute)
    return AppendedFile(absolute)


def _append_in_one_call() -> Callable[[str, Identity, bytes], int]:
    """Return the C function, during whose call no other code of the process runs, or else its Python twin."""
    try:
        from samebits import _reader
    except ImportError:
        return append
    one_call: Any = getattr(_reader, "append", None)
    return append if one_call is None or os.name != "posix" else one_call


def append(path: str, identity: Identity, data: bytes) -> int:
    """Do what `samebits._reader.append` does, as nearly as Python can: return 0 or an error number."""
    try:
        descriptor = os.open(path, _FLAGS)
    except OSError as error:
        pass_on(error)
        return error.errno or errno.EIO
    try:
        status = os.fstat(descriptor)
        head = os.read(descriptor, len(identity[3])) if stat.S_ISREG(status.st_mode) else None
        if (status.st_dev, status.st_ino, status.st_size, head) != identity:
            return errno.ESTALE
        return _append_whole(descriptor, status.st_size, data)
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
