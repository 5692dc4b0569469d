"""A live line on stderr while a script runs."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from samebits.recording.events import TensorInfo
    from samebits.recording.recorder import Recorder

_INTERVAL_S = 0.2


class Progress:
    """Shows steps, seconds and digests per second, at most five times a second.

    Args:
        recorder: whose run is shown.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._start = self._shown = time.monotonic()
        self._visible = False

    def __call__(self, _infos: tuple[TensorInfo, ...], _digests: bytes) -> None:
        """Called at each boundary."""
        now = time.monotonic()
        if now - self._shown < _INTERVAL_S:
            return
        self._shown = now
        seconds = now - self._start
        rate = self._recorder.n_values / seconds
        self._write(f"\r\x1b[Ksamebits: step {self._recorder.step} · {seconds:.0f} s · {rate:,.0f} digests/s")
        self._visible = True

    def clear(self) -> None:
        """Take the line away."""
        if self._visible:
            self._write("\r\x1b[K")
            self._visible = False

    def _write(self, text: str) -> None:
        stream = sys.__stderr__
        if stream is not None:
            stream.write(text)
            stream.flush()
