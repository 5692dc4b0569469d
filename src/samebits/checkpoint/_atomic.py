"""Files that appear whole or not at all, also when the process is killed or the power fails."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from typing import TYPE_CHECKING

from samebits._text import files
from samebits.errors import SamebitsError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

try:
    import fcntl
except ImportError:  # Windows: files of killed processes are not removed there
    fcntl = None  # type: ignore[assignment]

_BUFFER = 1 << 20  # larger arrays are written without a copy
_LONGEST_NAME = 150
_TEMPORARY = re.compile(r"\.(.+)\.[0-9]+-[0-9]+\.tmp", re.DOTALL)


@contextlib.contextmanager
def replaced(path: str) -> Iterator[BinaryIO]:
    """Open a file to write, which replaces `path` when the block ends without an exception.

    The file is written beside the target under a temporary name, flushed to the disk and renamed; then the
    folder is flushed. Until then an existing file is untouched. Temporary files of processes that were killed
    are removed first.

    Raises:
        SamebitsError: the target exists and is no regular file (a symbolic link is none), or the operating
            system refused; `checkpoint-unwritable`.
    """
    target = os.path.abspath(path)
    try:
        with _temporary(target) as (file, name):
            yield file
            file.flush()
            os.fsync(file.fileno())
            if fcntl is None:
                file.close()  # Windows does not rename open files
            files.put_in_place(name, target)
        _flush_folder(os.path.dirname(target))
    except OSError as error:
        reason = error.strerror or str(error)
        unchanged = "; what was there is unchanged" if os.path.lexists(target) else ""
        message = f"{path} cannot be written: {reason}{unchanged}. Check the folder and the free space."
        raise SamebitsError(message, slug="checkpoint-unwritable") from error


@contextlib.contextmanager
def _temporary(target: str) -> Iterator[tuple[BinaryIO, str]]:
    folder, base = os.path.split(target)
    files.refuse_irregular(target)
    remove_abandoned(folder, base)
    descriptor, name = _create(folder, base)
    try:
        with os.fdopen(descriptor, "wb", buffering=_BUFFER) as file:
            yield file, name
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


def _create(folder: str, base: str) -> tuple[int, str]:
    """Create a file that only this process writes; return its descriptor, locked, and its path."""
    number = 0
    while True:
        name = os.path.join(folder, f".{_shortened(base)}.{os.getpid()}-{number}.tmp")
        number += 1
        try:
            descriptor = files.create(name, mode=files.SHARED)
        except FileExistsError:
            continue
        if _lock(descriptor) and _is_still(name, descriptor):
            return descriptor, name
        os.close(descriptor)  # another process took it for an abandoned file


def _shortened(base: str) -> str:
    """Shorten a name so that the temporary one is not longer than file systems allow."""
    return base.encode(errors="surrogateescape")[:_LONGEST_NAME].decode(errors="ignore")


def _lock(descriptor: int) -> bool:
    """Lock a file for as long as this process lives; return True where locks do not exist."""
    if fcntl is None or sys.platform == "win32":
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return True


def _is_still(name: str, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.stat(name), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def remove_abandoned(folder: str, base: str | re.Pattern[str]) -> None:
    """Remove the temporary files of processes that have ended.

    A file belongs to a living process while that process holds its lock. Where there are no locks, nothing is
    removed.

    Args:
        folder: the folder of the files.
        base: the name of the target file, or a pattern of such names.
    """
    if fcntl is None:
        return
    for name in os.listdir(folder):
        match = _TEMPORARY.fullmatch(name)
        if match is None:
            continue
        wanted = match[1] == _shortened(base) if isinstance(base, str) else base.fullmatch(match[1])
        if wanted:
            with contextlib.suppress(OSError):
                _remove_unlocked(os.path.join(folder, name))


def _remove_unlocked(path: str) -> None:
    if sys.platform == "win32" or not files.refuse_irregular(path):
        return
    flags = os.O_RDWR | os.O_NONBLOCK | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
    descriptor = os.open(path, flags)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if _is_still(path, descriptor):  # else it was finished, and the name is the next one's
            os.unlink(path)
    finally:
        os.close(descriptor)


def _flush_folder(folder: str) -> None:
    """Make a renaming survive a loss of power, where folders can be opened."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
