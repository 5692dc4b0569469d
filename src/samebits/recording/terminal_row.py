"""The last row of a terminal, kept for progress while the script runs."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING

from samebits._runtime.frames import pass_on
from samebits._text.printable import printable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from samebits.digest.pending import Digests
    from samebits.recording._recorder import Recorder
    from samebits.records.events import TensorInfo

_LEAST_ROWS = 4
_WORTH_SHOWING = 1 << 30  # bytes
_INTERVAL_S = 0.2
# ECMA-48 and DEC VT100: IND (down one line, scrolling at the bottom) and CUU (up one line) make room below
# the cursor and leave its column alone. DECSC and DECRC save and restore the cursor, DECSTBM sets which rows
# scroll.
_MAKE_ROOM = "\x1bD\x1b[A"
_SAVE, _RESTORE, _ERASE = "\x1b7", "\x1b8", "\x1b[2K"


def can_show(environment: Mapping[str, str], descriptor: int = 2) -> bool:
    """Tell whether a descriptor is a terminal that understands these commands.

    Args:
        environment: the variables of this process.
        descriptor: of the standard error stream.
    """
    if environment.get("TERM", "dumb") in ("dumb", "unknown", ""):
        return False
    try:
        return os.isatty(descriptor) and os.get_terminal_size(descriptor).lines >= _LEAST_ROWS
    except OSError:
        return False


class StatusRow:
    """Writes one line into the last row, and never anywhere else.

    The script's streams stay as they are: only the terminal learns which rows scroll. Nothing is written once
    the descriptor is no longer the terminal that it was, because then it is the script's.

    Args:
        descriptor: of the standard error stream.
    """

    def __init__(self, descriptor: int = 2) -> None:
        self._descriptor = descriptor
        self._device = _device(descriptor)
        self._encoding = getattr(sys.__stderr__, "encoding", None) or "ascii"
        self._lines = 0  # of the terminal when the row was last drawn; 0 when it is not kept

    def show(self, text: str) -> None:
        """Put a text into the row, as much of it as fits.

        Args:
            text: one line; control characters in it are shown as escape sequences.
        """
        size = self._size()
        if size is None or size.lines < _LEAST_ROWS:
            return
        make_room = "" if self._lines == size.lines else _MAKE_ROOM
        self._lines = size.lines
        line = f"\x1b[1;{size.lines - 1}r\x1b[{size.lines};1H{_ERASE}{printable(text)[: size.columns - 1]}"
        self._write(f"{make_room}{_SAVE}{line}{_RESTORE}")

    def clear(self) -> None:
        """Give the row back."""
        if self._lines:
            size = self._size()
            lines = self._lines if size is None else size.lines
            self._lines = 0
            self._write(f"{_SAVE}\x1b[r\x1b[{lines};1H{_ERASE}{_RESTORE}")

    def _size(self) -> os.terminal_size | None:
        if self._device is None or _device(self._descriptor) != self._device:
            return None
        try:
            return os.get_terminal_size(self._descriptor)
        except OSError as error:
            pass_on(error)
            return None

    def _write(self, text: str) -> None:
        if self._device is None or _device(self._descriptor) != self._device:
            return
        try:
            os.write(self._descriptor, text.encode(self._encoding, "replace"))
        except OSError as error:  # the terminal is gone
            pass_on(error)
            self._device = None


def _device(descriptor: int) -> int | None:
    """Return the number of a terminal; None for anything else, and on Windows, which has none."""
    if sys.platform == "win32":
        return None
    try:
        return os.fstat(descriptor).st_rdev if os.isatty(descriptor) else None
    except OSError as error:
        pass_on(error)
        return None


class Progress:
    """Shows the step and the seconds in the last row of the terminal, at most five times a second.

    Args:
        recorder: whose run is shown.
        phase: which run it is, in words; may be empty.
    """

    def __init__(self, recorder: Recorder, phase: str = "") -> None:
        self._recorder = recorder
        self._phase = phase
        self._row = StatusRow() if can_show(os.environ) else None
        self._start = self._shown = time.monotonic()

    def __call__(self, _infos: tuple[TensorInfo, ...], _digests: Digests) -> None:
        """Show the step at a boundary, unless the row was drawn just before."""
        now = time.monotonic()
        if self._row is None or now - self._shown < _INTERVAL_S:
            return
        self._shown = now
        parts = [self._phase] if self._phase else []
        parts += [f"step {self._recorder.step}", f"{now - self._start:.0f} s"]
        self._row.show(f"samebits: {status_text(parts)}")

    def clear(self) -> None:
        """Give the row back."""
        if self._row is not None:
            self._row.clear()


def status_text(parts: list[str]) -> str:
    """Join the parts of a line of status."""
    return " · ".join(parts)


def show_digesting(done: int, total: int, *, least: int = _WORTH_SHOWING) -> None:
    """Show on a terminal how much data was digested at the end of a run, if that takes long.

    Args:
        done: bytes so far.
        total: bytes in all.
        least: of fewer bytes nothing is shown.
    """
    if total < least or not sys.stderr.isatty():
        return
    share = f"{done / total:.0%} of {total / 1e9:.1f} GB"
    shown = f"samebits: digesting the data that was read, {share} (Ctrl-C skips it)" if done < total else ""
    sys.stderr.write(f"\r{_ERASE}{shown}")
    sys.stderr.flush()
