"""What the user sees of a run on a terminal while the script runs."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from samebits.recording.status_row import StatusRow, can_show

if TYPE_CHECKING:
    from samebits.recording.events import TensorInfo
    from samebits.recording.recorder import Recorder

_INTERVAL_S = 0.2


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

    def __call__(self, _infos: tuple[TensorInfo, ...], _digests: bytes) -> None:
        """Called at each boundary."""
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
    """The parts of a line of status."""
    return " · ".join(parts)
