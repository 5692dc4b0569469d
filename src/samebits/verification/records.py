"""The verdict over two records that are there already."""

from __future__ import annotations

from typing import TYPE_CHECKING

from samebits.comparison.compare import compare
from samebits.recording.store import RecordReader
from samebits.verification.child_records import with_children
from samebits.verification.results import ScriptRun, Verification
from samebits.verification.tools import Counted, Tools

if TYPE_CHECKING:
    from samebits.recording.events import RunInfo


def verify_records(first: str, second: str) -> Verification:
    """Compare two records; where both have operations, name the first that differed.

    Args:
        first: path of one record.
        second: path of the other.

    Raises:
        SamebitsError: one of them cannot be read.
    """
    with RecordReader(first) as a, RecordReader(second) as b:
        runs = (_run(first, a.info), _run(second, b.info))
        counted = Counted(a)
        comparison = with_children(compare(counted, b), (first, second), Tools())
        command = a.info.command
    return Verification(comparison, command, runs, 0.0, counted.n_values)


def _run(path: str, info: RunInfo) -> ScriptRun:
    return ScriptRun("compare", path, info.exit_status or 0, 0.0, (), info)
