"""Remarks on a run whose code `torch.compile` compiled, or would have."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from samebits._torch.core import compiled_graphs
from samebits.environment.generated_code import kernels_with_atomics
from samebits.records.kinds import Level
from samebits.records.notes import Note, NoteCode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from samebits.recording.settings import RecordingSettings

_MOST_NAMED = 3


def compiler_notes(settings: RecordingSettings, *, compiles: bool) -> Iterator[Note]:
    """Yield notes on compiled code.

    Args:
        settings: of the recording.
        compiles: whether the script called a compiler.
    """
    graphs = compiled_graphs()
    if settings.level == Level.OP or settings.replay:  # `DispatchProbe`: compiled code runs eagerly
        if graphs or compiles:
            yield Note.of(NoteCode.COMPILE_OFF, "record" if settings.level == Level.OP else "replay")
    elif graphs:
        yield Note.of(NoteCode.COMPILED, str(graphs))
        torch = sys.modules["torch"]
        kernels = kernels_with_atomics() if torch.are_deterministic_algorithms_enabled() else ()
        if kernels:
            yield Note.of(NoteCode.COMPILED_ATOMICS, *kernels[:_MOST_NAMED])
