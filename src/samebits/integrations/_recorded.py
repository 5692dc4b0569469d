"""The record of a training that a trainer drives."""

from __future__ import annotations

import atexit
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from samebits.errors import SamebitsError
from samebits.recording.naming import next_free
from samebits.recording.session import record
from samebits.rng.active import PROCESS
from samebits.rng.states import current_rank

if TYPE_CHECKING:
    from contextlib import AbstractContextManager


class TrainingRecord:
    """Records this process at the level of steps, from `begin` to `end`.

    A process that is recorded already, because its script runs under `samebits run` or `verify`, is not
    recorded twice. Every rank of a distributed training writes its own record: `run.rank-1.sbr` beside
    `run.sbr`. A record that is there is kept: the next training is recorded in `run-2.sbr`, and says so.

    Args:
        path: the record to write; None for none.

    Attributes:
        written: the record of the last training; None before the first.
    """

    def __init__(self, path: str | None) -> None:
        self._path = path
        self.written: Path | None = None
        self._open: AbstractContextManager[Path] | None = None

    def begin(self) -> None:
        """Begin to record.

        Raises:
            SamebitsError: the record cannot be written.
        """
        if self._open is not None:  # the training before ended in an error that somebody caught
            self.end(RuntimeError("the training did not come to its end"))
        if self._path is None or PROCESS.recording is not None:
            return
        self._open = self._begun(*_of_rank(self._path))
        atexit.register(self._at_exit)

    def _begun(self, stem: str, suffix: str) -> AbstractContextManager[Path]:
        """Begin a record under a name that is free."""
        while True:
            first = path = Path(stem + suffix)
            if first.is_file():
                path = next_free(first.parent, Path(stem).name, suffix, least=2)
            begun = record(path, overwrite=False)
            try:
                begun.__enter__()
            except SamebitsError as error:
                if error.slug != "record-exists":
                    raise
                continue  # another process was first
            if path != first:
                print(f"samebits: {first} is kept; this training is recorded in {path}", file=sys.stderr)
            self.written = path
            return begun

    def end(self, error: BaseException | None = None) -> None:
        """Close the record.

        Args:
            error: what the training failed with.
        """
        begun, self._open = self._open, None
        if begun is not None:
            atexit.unregister(self._at_exit)
            traceback = None if error is None else error.__traceback__
            begun.__exit__(None if error is None else type(error), error, traceback)

    def _at_exit(self) -> None:
        """Close the record where a trainer told nobody that it failed."""
        seen = getattr(sys, "last_value", None)
        error = seen if isinstance(seen, BaseException) else None
        self.end(error or RuntimeError("the training did not come to its end"))


def _of_rank(path: str) -> tuple[str, str]:
    """Return the beginning of the name of this rank's record, after which a number may stand, and its end."""
    rank = current_rank()
    stem, suffix = os.path.splitext(path)
    return stem, f".rank-{rank}{suffix}" if rank else suffix
