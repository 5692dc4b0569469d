"""Gives each run a fresh copy of the working folder, and the same standard input."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import stat
import sys
import tempfile
import threading
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from samebits.errors import SamebitsError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from samebits.recording.settings import RecordingSettings
    from samebits.verification.runs import Script

_CHUNK = 1 << 16


class StandardInput:
    """Gives every run of a script the same standard input.

    A file is rewound to its earlier position. Data from a pipe are saved in a temporary file as the runs
    read them. A terminal or a closed input is passed on unchanged: a terminal asks the user in each run.

    Args:
        source: file descriptor of this program's own input.
    """

    def __init__(self, source: int = 0) -> None:
        self._source = source
        self._mode = _mode_of(source)
        self._start = os.lseek(source, 0, os.SEEK_CUR) if stat.S_ISREG(self._mode) else 0
        self._saved = tempfile.TemporaryFile() if self._is_pipe else None  # noqa: SIM115 - for all runs
        self._ended = False
        self._was_read = False
        self._error: OSError | None = None

    @property
    def _is_pipe(self) -> bool:
        return stat.S_ISFIFO(self._mode) or stat.S_ISSOCK(self._mode)

    def can_be_shared(self) -> bool:
        """Tell whether two runs can have it at once: it is no pipe, and no file that a run has read."""
        return not (self._is_pipe or self._was_read)

    @contextlib.contextmanager
    def for_run(self) -> Iterator[int | None]:
        """Give the descriptor to hand to a child process; None for this program's own.

        Raises:
            OSError: afterwards, if the data could not be saved, so that other runs cannot get them.
        """
        if stat.S_ISREG(self._mode):
            os.lseek(self._source, self._start, os.SEEK_SET)
        if not self._is_pipe:
            yield None
            if stat.S_ISREG(self._mode):
                self._was_read |= os.lseek(self._source, 0, os.SEEK_CUR) != self._start
            return
        reading, writing = os.pipe()
        stop, stopper = os.pipe()
        relay = threading.Thread(target=self._relay, args=(writing, stop), daemon=True)
        relay.start()
        try:
            yield reading
        finally:
            os.close(reading)
            os.close(stopper)  # wakes the thread where it waits
            relay.join()
            os.close(stop)
        if self._error is not None:
            raise self._error

    def _relay(self, writing: int, stop: int) -> None:
        try:
            for data in self._data(stop):
                if not _write(writing, data, stop):
                    break
        except BrokenPipeError:  # the child has ended
            pass
        except OSError as error:  # the disk is full
            self._error = error
        finally:
            os.close(writing)  # the child sees the end

    def _data(self, stop: int) -> Iterator[bytes]:
        """Yield the data that earlier runs were given, then new data."""
        saved = self._saved
        if saved is None:
            return
        saved.seek(0)
        while data := saved.read(_CHUNK):
            yield data
        while not self._ended:
            if stop in select.select([self._source, stop], [], [])[0]:
                return
            data = os.read(self._source, _CHUNK)
            self._ended = not data
            saved.write(data)
            yield data


def _mode_of(source: int) -> int:
    try:
        return os.fstat(source).st_mode
    except OSError:  # closed
        return 0


def _write(writing: int, data: bytes, stop: int) -> bool:
    """Write all data as the child reads it; return False if the run has ended."""
    if sys.platform == "win32":  # where only sockets can be waited for, so that this ends when the run does
        while data:
            data = data[os.write(writing, data) :]
        return True
    os.set_blocking(writing, False)
    while data:
        readable, _, _ = select.select([stop], [writing], [])
        if readable:
            return False
        data = data[os.write(writing, data) :]
    return True


_LEFT_OUT = (".git", ".hg", ".samebits", "__pycache__", ".venv", "node_modules", ".mypy_cache", ".ruff_cache")
_MOST_FILES = 200_000
_SHOWN = 3
MOST_COPIED_BYTES = 2 << 30


class WorkingFolder:
    """Makes copies of a folder under one path, one at a time.

    All runs find their files under the same path, so that no path makes a difference. The copy lacks version
    control, caches, virtual environments and the records of samebits. Symbolic links stay links.

    Args:
        source: the folder.
        path: where the copy is.
        share: paths in the folder that become links to the originals.
        most_bytes: a larger folder is refused.

    Raises:
        SamebitsError: `resume-share`: a shared path is not in the folder.
    """

    def __init__(self, source: Path, path: Path, share: Collection[str], most_bytes: int) -> None:
        self.source = Path(os.path.realpath(source))
        self.path = path.absolute()
        self._share = {self._inside(path) for path in share}
        self._most_bytes = most_bytes

    def check(self) -> None:
        """Refuse a folder that is too large to be copied again and again.

        Raises:
            SamebitsError: `resume-folder-large`.
        """
        sizes: dict[str, int] = {}
        for files, path in enumerate(self._files(), 1):
            top = os.path.relpath(path, self.source).split(os.sep)[0]
            sizes[top] = sizes.get(top, 0) + os.lstat(path).st_size
            if files > _MOST_FILES or sum(sizes.values()) > self._most_bytes:
                largest = sorted(sizes, key=lambda name: -sizes[name])[:_SHOWN]
                message = (
                    f"{self.source} holds more than {self._most_bytes / 1e9:.1f} GB or {_MOST_FILES} files,"
                    " and each run gets a copy of it; give what the script only reads by --share, such as"
                    f" `--share {largest[0]}` (largest: {', '.join(largest)}), or run in a smaller folder"
                )
                raise SamebitsError(message, slug="resume-folder-large")

    def renew(self) -> None:
        """Make a fresh copy."""
        self.remove()
        self._copy(self.source, self.path)

    def remove(self) -> None:
        """Remove the copy; links are removed, not their targets."""
        if os.path.lexists(self.path):
            _make_removable(self.path)
            shutil.rmtree(self.path)

    def listed(self) -> dict[str, tuple[int, int]]:
        """Return size and time of change (ns) of each file in the copy, by its path below it."""
        files = {}
        for folder, _, names in os.walk(self.path):
            for name in names:
                path = os.path.join(folder, name)
                try:
                    facts = os.lstat(path)
                except OSError:  # a temporary file of a process that still ends
                    continue
                if stat.S_ISREG(facts.st_mode) and name[-4:] != ".pyc":
                    files[os.path.relpath(path, self.path)] = (facts.st_size, facts.st_mtime_ns)
        return files

    def original(self, path: str) -> str:
        """Return the path in the user's own folder of a file in the copy."""
        inside = os.path.relpath(path, self.path)
        return path if inside.startswith(os.pardir) else str(self.source / inside)

    def copied(self, path: str) -> str:
        """Return the path of a file for a run in the copy: a relative path below the folder stays."""
        full = os.path.normpath(os.path.join(self.source, path))
        if os.path.relpath(full, self.source).startswith(os.pardir):
            full = os.path.realpath(full)
        inside = os.path.relpath(full, self.source)
        if inside.startswith(os.pardir):
            return full
        return str(self.path / inside) if os.path.isabs(path) else path

    def _link(self, folder: Path, text: str) -> str:
        """Return the target of a link: the copy of a file in the folder, else the original target."""
        full = os.path.normpath(os.path.join(folder, text))
        inside = os.path.relpath(full, self.source)
        if inside.startswith(os.pardir):
            return full
        return str(self.path / inside) if os.path.isabs(text) else text

    def _inside(self, path: str) -> str:
        full = os.path.normpath(os.path.join(self.source, path))
        inside = os.path.relpath(full, self.source)
        if inside.startswith(os.pardir) or inside == os.curdir or not os.path.lexists(full):
            message = f"--share {path}: expected a file or folder in {self.source}, found none"
            raise SamebitsError(message, slug="resume-share")
        return inside

    def _is_left_out(self, path: str) -> bool:
        own = path in (str(self.path), str(self.path.parent))  # records
        return own or is_of_tools(path)

    def _files(self) -> Iterator[str]:
        for folder, folders, names in os.walk(self.source):
            inside = os.path.relpath(folder, self.source)
            folders[:] = [
                name for name in folders
                if not self._is_left_out(os.path.join(folder, name))
                and os.path.normpath(os.path.join(inside, name)) not in self._share
            ]  # fmt: skip
            yield from (
                os.path.join(folder, name)
                for name in names
                if os.path.normpath(os.path.join(inside, name)) not in self._share
            )

    def _copy(self, source: Path, target: Path) -> None:
        target.mkdir(parents=True)
        for entry in os.scandir(source):
            path, made = Path(entry.path), target / entry.name
            if os.path.relpath(entry.path, self.source) in self._share:
                made.symlink_to(path)
            elif entry.is_symlink():
                made.symlink_to(self._link(source, os.readlink(entry.path)))
            elif entry.is_dir():
                if not self._is_left_out(entry.path):
                    self._copy(path, made)
            elif entry.is_file():
                shutil.copy2(path, made)
        shutil.copystat(source, target)


def is_of_tools(folder: str) -> bool:
    """Tell whether a folder belongs to version control, a virtual environment or a cache."""
    return os.path.basename(folder) in _LEFT_OUT or os.path.isfile(os.path.join(folder, "pyvenv.cfg"))


def in_copy(
    copy: WorkingFolder, script: Script, settings: RecordingSettings
) -> tuple[Script, RecordingSettings]:
    """Copy the working folder, and return the script and its settings for a run in the copy.

    Args:
        copy: makes it.
        script: what is run.
        settings: how it is recorded.
    """
    copy.renew()
    target = script.target
    own = None if target.script is None else copy.copied(target.script)
    script = replace(script, target=replace(target, script=own), folder=str(copy.path))
    moved = os.path.realpath(copy.path)
    overlay = tuple((_moved_path(path, str(copy.source), moved), text) for path, text in settings.overlay)
    record = os.path.abspath(settings.record)
    reference = os.path.abspath(settings.reference) if settings.reference else ""
    given = settings.substitution
    if given is not None and given.source:
        given = replace(given, source=os.path.abspath(given.source))
    return script, replace(
        settings, record=record, reference=reference, overlay=overlay, substitution=given,
        moved=(moved, str(copy.source)),
    )  # fmt: skip


def _moved_path(path: str, source: str, target: str) -> str:
    return target + path[len(source) :] if path.startswith(source + os.sep) else path


def _make_removable(top: Path) -> None:
    """Make read-only folders writable, so that they can be removed; links are left alone."""
    for folder, folders, _ in os.walk(top):
        for path in (os.path.join(folder, name) for name in folders):
            mode = os.lstat(path).st_mode
            if stat.S_ISDIR(mode) and mode & stat.S_IRWXU != stat.S_IRWXU:
                os.chmod(path, stat.S_IMODE(mode) | stat.S_IRWXU)


def newest_first(files: dict[str, tuple[int, int]]) -> Sequence[str]:
    """Return the paths that `listed` gave, the last changed first."""
    return sorted(files, key=lambda path: (-files[path][1], path))
