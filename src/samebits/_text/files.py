"""Writing regular files only, and opening the files of strangers safely.

A name may stand for anything: a device, a pipe that blocks whoever opens it, a symbolic link into another
folder. samebits writes to regular files only and follows no symbolic link to one. The check and the writing
are one system call wherever the system has one for it.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import BinaryIO, TextIO

PRIVATE = 0o600
"""Mode of files that may hold what a user typed or what a script printed: for their owner only."""

SHARED = 0o666
"""Mode of files that others may read as far as the user's umask lets them."""

_KINDS: tuple[tuple[Callable[[int], bool], str], ...] = (
    (stat.S_ISLNK, "a symbolic link"),
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)
_NO_WAIT = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_CLOEXEC", 0)
_BINARY = getattr(os, "O_BINARY", 0)
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)


def refuse_irregular(path: str | os.PathLike[str]) -> bool:
    """Refuse a target that exists and is not a regular file; symbolic links are refused too.

    Returns:
        Whether a regular file is there.

    Raises:
        OSError: something else is there; `strerror` says what.
    """
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return False
    kind = _kind(mode)
    if kind:
        raise _irregular(path, kind)
    return True


def create(path: str | os.PathLike[str], *, mode: int = PRIVATE) -> int:
    """Make a file that was not there; a symbolic link, dangling or not, counts as there.

    Returns:
        Its descriptor, open for reading and writing.

    Raises:
        FileExistsError: something has that name.
        OSError: the system refused.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | _BINARY | getattr(os, "O_CLOEXEC", 0)
    return os.open(path, flags, mode)


def open_to_write(path: str | os.PathLike[str], *, mode: int = PRIVATE) -> BinaryIO:
    """Open a regular file, or a new one, for writing from its beginning.

    Args:
        path: its contents are dropped once it is known to be a regular file.
        mode: of a new file.

    Raises:
        OSError: it is something else, a symbolic link too, or the system refused.
    """
    refuse_irregular(path)  # for its message; the check that counts is on the descriptor
    flags = os.O_WRONLY | os.O_CREAT | _NO_FOLLOW | _NO_WAIT | _BINARY
    descriptor = os.open(path, flags, mode)
    try:
        _refuse_opened(path, descriptor)
        os.ftruncate(descriptor, 0)
        return os.fdopen(descriptor, "wb")
    except BaseException:
        os.close(descriptor)
        raise


def open_text_to_write(path: str | os.PathLike[str], *, mode: int = PRIVATE) -> TextIO:
    """Open a file as `open_to_write` does, for text in UTF-8."""
    import io

    return io.TextIOWrapper(open_to_write(path, mode=mode), encoding="utf-8", newline="\n")


def write_whole(path: str | os.PathLike[str], data: bytes, *, mode: int = PRIVATE) -> None:
    """Write a file that appears whole or not at all, replacing a regular file of that name.

    Raises:
        OSError: something else is there, a symbolic link too, or the system refused.
    """
    refuse_irregular(path)
    descriptor, name = _temporary(os.fspath(path), mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        put_in_place(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


def put_in_place(temporary: str, path: str | os.PathLike[str]) -> None:
    """Give a finished file its name, replacing a regular file of that name.

    Raises:
        OSError: something else has that name by now, or the system refused.
    """
    refuse_irregular(path)
    os.replace(temporary, path)


def open_to_read(path: str | os.PathLike[str], *, follow: bool = True) -> BinaryIO:
    """Open a regular file without waiting for anything.

    Args:
        path: of the file.
        follow: whether a symbolic link is followed to one.

    Raises:
        OSError: it is something else, such as a FIFO or a device, or the system refused.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | _NO_WAIT | _BINARY | (0 if follow else _NO_FOLLOW))
    except OSError as error:
        if error.errno == errno.ENXIO:  # a socket
            raise _irregular(path, "no regular file") from None
        raise
    try:
        _refuse_opened(path, descriptor)
        return open(path, "rb", opener=lambda _path, _flags: descriptor)  # it knows its name then
    except BaseException:
        os.close(descriptor)
        raise


def _refuse_opened(path: str | os.PathLike[str], descriptor: int) -> None:
    kind = _kind(os.fstat(descriptor).st_mode)
    if kind:
        raise _irregular(path, kind)


def _kind(mode: int) -> str:
    """Describe the kind of file; empty for a regular one."""
    if stat.S_ISREG(mode):
        return ""
    return next((words for holds, words in _KINDS if holds(mode)), "no regular file")


def _irregular(path: str | os.PathLike[str], kind: str) -> OSError:
    return OSError(errno.EINVAL, f"it is {kind}, expected a regular file", os.fspath(path))


def _temporary(path: str, mode: int) -> tuple[int, str]:
    """Make a new file beside another; return its descriptor and its path."""
    folder, base = os.path.split(path)
    shortened = base.encode(errors="surrogateescape")[:150].decode(errors="ignore")
    for number in itertools.count():
        name = os.path.join(folder, f".{shortened}.{os.getpid()}-{number}.tmp")
        with contextlib.suppress(FileExistsError):
            return create(name, mode=mode), name
    raise AssertionError
