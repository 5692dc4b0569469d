"""Keeping what the first ops of a run gave, in case one of them is where two runs part."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from samebits.hooks.interruptions import ignored
from samebits.recording.probes.tensor_files import to_file

if TYPE_CHECKING:
    from collections.abc import Sequence

    from samebits.recording.recorder import Recorder

_MOST_EACH = 1 << 22
_KINDS = frozenset({"op", "batch", "rng"})


class KeepProbe:
    """Stores the tensors that ops and loaders give, from a step on and until a number of bytes is reached.

    With them go what came from outside torch into an op, and the states that generators were seeded to or
    drawn from.

    Args:
        recorder: whose events are watched; its settings say from which step and how many bytes.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._first_step = recorder.settings.keep_from_step
        self._room = recorder.settings.keep_bytes
        self._kept: list[tuple[int, int, Any]] = []

    def install(self, torch: Any) -> None:  # noqa: ARG002 - all probes are installed alike
        """Watch events."""
        self._recorder.on_tensors.append(self.see)

    def remove(self) -> None:
        """Watch nothing, and write what was kept."""
        self._recorder.on_tensors.remove(self.see)
        files = []
        for seq, position, tensor in self._kept:
            with ignored():  # of a class that cannot be written
                files.append((seq, position, to_file(tensor)))
        self._kept.clear()
        self._recorder.writer.capture_all([(seq, position, data) for seq, position, data in files if data])

    def see(self, seq: int, kind: str, op: str, site: int | None, tensors: Sequence[tuple[int, Any]]) -> None:  # noqa: ARG002 - what every listener is told
        """Keep a copy of the tensors (position in the event, tensor)."""
        if self._room <= 0 or self._recorder.step < self._first_step or kind not in _KINDS:
            return
        for position, tensor in tensors:
            n_bytes = tensor.numel() * tensor.element_size()
            if n_bytes > _MOST_EACH:
                continue
            self._room -= n_bytes
            with ignored(), self._recorder.quietly:  # of a class that cannot be copied
                self._kept.append((seq, position, tensor.detach().clone()))
