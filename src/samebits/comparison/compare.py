"""Compares two record files."""

from __future__ import annotations

import traceback
from dataclasses import replace
from typing import TYPE_CHECKING

from samebits.comparison.origin import find_origins
from samebits.comparison.verdict import judge
from samebits.errors import SamebitsError
from samebits.recording.store import RecordReader

if TYPE_CHECKING:
    from pathlib import Path

    from samebits.comparison.results import Comparison
    from samebits.comparison.sources import Record
    from samebits.recording.notes import Note


def compare_records(a: str | Path, b: str | Path) -> Comparison:
    """Compare two records of the same script: the verdict, and the origin of a difference.

    The origin is an operation when both records are of level `op`, else the first event that differed.

    Args:
        a: path of the first record.
        b: path of the second.

    Raises:
        SamebitsError: a file is missing, is no record, or is damaged.
    """
    with RecordReader(a) as first, RecordReader(b) as second:
        return compare(first, second)


def compare(a: Record, b: Record) -> Comparison:
    """Compare two records that are open.

    State that differs only in memory that nothing wrote and nothing read is left out, and noted.
    """
    result = judge(a, b)
    if result.verdict != "different" or a.info.level != "op" or b.info.level != "op":
        return result
    try:
        return _explained(a, b, result)
    except SamebitsError:
        raise
    except Exception:  # noqa: BLE001 - a bug of ours: the verdict stands
        return replace(result, failure=traceback.format_exc())


def _explained(a: Record, b: Record, result: Comparison) -> Comparison:
    """The verdict with the origins of a difference between two op-level records."""
    excused: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()
    origins = find_origins(a, b)
    while origins.unread and not set(origins.unread) <= set(excused):
        excused, notes = (*excused, *origins.unread), notes + origins.notes
        result = judge(a, b, excused)
        if result.verdict != "different":
            return replace(result, notes=notes + result.notes)
        origins = find_origins(a, b, excused)
    findings = origins.findings or result.findings
    return replace(result, findings=findings, notes=notes + origins.notes + result.notes)
