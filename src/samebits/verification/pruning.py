"""What stays on disk of a verification: the records that its report is about."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from samebits.recording.store.creation import sidecars
from samebits.recording.store.shrink import drop_contents

if TYPE_CHECKING:
    from samebits.verification.results import ScriptRun, Verification

_KEPT = frozenset({"prepare", "compare", "excuse", "localise", "replay"})
_SHRUNK = frozenset({"localise", "replay"})


def pruned(result: Verification) -> Verification:
    """The result, after the records of runs with a change were removed, and kept tensors from the others.

    `show` and `compare` need neither. What cannot be removed stays.

    Args:
        result: of a verification that is over.
    """
    return replace(result, runs=tuple(map(_pruned, result.runs)))


def _pruned(run: ScriptRun) -> ScriptRun:
    record = Path(run.record)
    if run.purpose in _SHRUNK:
        drop_contents(record)
    if run.purpose in _KEPT:
        return run
    for path in (record, *sidecars(record)):
        with contextlib.suppress(OSError):
            path.unlink()
    return replace(run, kept=False)
