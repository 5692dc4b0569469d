"""What each run reads from standard input: the same as the first run did."""

from __future__ import annotations

import contextlib
import os
import select
import stat
import tempfile
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_CHUNK = 1 << 16


class StandardInput:
    """Gives every run of a script the same standard input.

    A file is wound back to where it was. What comes through a pipe is kept in a temporary file as the runs
    read it. A terminal, or nothing, is handed on as it is: on a terminal the user is asked in each run.

    Args:
        source: file descriptor of this program's own input.
    """

    def __init__(self, source: int = 0) -> None:
        self._source = source
        self._mode = _mode_of(source)
        self._start = os.lseek(source, 0, os.SEEK_CUR) if stat.S_ISREG(self._mode) else 0
        self._kept = tempfile.TemporaryFile() if self._is_pipe else None  # noqa: SIM115 - for all runs
        self._ended = False
        self._was_read = False
        self._error: OSError | None = None

    @property
    def _is_pipe(self) -> bool:
        return stat.S_ISFIFO(self._mode) or stat.S_ISSOCK(self._mode)

    def can_be_shared(self) -> bool:
        """Whether two runs can have it at the same time: it is no pipe, nor a file that a run has read."""
        return not (self._is_pipe or self._was_read)

    @contextlib.contextmanager
    def for_run(self) -> Iterator[int | None]:
        """Gives the descriptor to hand to a child process; None for this program's own.

        Raises:
            OSError: afterwards, when what was read could not be kept: other runs cannot be given it.
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
        """What earlier runs were given, then what comes."""
        kept = self._kept
        if kept is None:
            return
        kept.seek(0)
        while data := kept.read(_CHUNK):
            yield data
        while not self._ended:
            if stop in select.select([self._source, stop], [], [])[0]:
                return
            data = os.read(self._source, _CHUNK)
            self._ended = not data
            kept.write(data)
            yield data


def _mode_of(source: int) -> int:
    try:
        return os.fstat(source).st_mode
    except OSError:  # closed
        return 0


def _write(writing: int, data: bytes, stop: int) -> bool:
    """Write all of it as the child reads; False when the child has ended."""
    os.set_blocking(writing, False)
    while data:
        readable, _, _ = select.select([stop], [writing], [])
        if readable:
            return False
        data = data[os.write(writing, data) :]
    return True
