"""The report on calls that were made again: of a function of a test, of a notebook's cell."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from samebits._text.option_names import Interface
from samebits.records.notes import Note, NoteCode
from samebits.report import text
from samebits.report.style import Style
from samebits.verification.repeated_calls import passes

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from samebits.verification.results import Verification

# What differs between the runs because they are to differ in it.
_OF_STRESS = (NoteCode.STRESS, NoteCode.ENVIRONMENT, NoteCode.MORE_OF_ENVIRONMENT)
_OF_BUDGET = (NoteCode.OUT_OF_TIME, NoteCode.OPS_TAKE_TOO_LONG)
_BUDGET = "--samebits-budget"  # what the option of `verify` is called in tests


def rendered(
    result: Verification,
    *,
    state_only: bool = False,
    interface: Interface = Interface.ASSERT_REPEATABLE,
    removed: Path | None = None,
) -> str:
    """Return the report of a verification; empty where the runs were identical.

    Args:
        result: of the verification.
        state_only: values that are only read out may differ.
        interface: the call that was judged.
        removed: a folder of records that are removed; lines that name them are no advice, and are left out.

    Raises:
        KeyboardInterrupt: Ctrl-C ended it.
    """
    if result.interrupted:
        raise KeyboardInterrupt
    if passes(result, state_only=state_only):
        return ""
    return report_on(result, Style(interface=interface), removed=removed)


def report_on(
    result: Verification,
    style: Style,
    *,
    removed: Path | None = None,
    cells: Mapping[str, tuple[str, ...]] = text.NO_CELLS,
) -> str:
    """Return the report of a verification, whatever it found.

    Args:
        result: of the verification.
        style: width, colour and the call that was judged.
        removed: see `rendered`.
        cells: see `Sources`.
    """
    comparison = result.comparison
    kept = tuple(
        Note.of(note.code, *note.arguments, _BUDGET) if note.code in _OF_BUDGET else note
        for note in comparison.notes
        if note.code not in _OF_STRESS
    )
    shown = replace(result, comparison=replace(comparison, notes=kept))
    report = text.render(shown, style, os.getcwd(), cells=cells)
    if removed is not None:
        lines = [line for line in report.splitlines() if os.fspath(removed) not in line]
        report = "\n".join(lines).rstrip()
    return f"{report}\n{comparison.failure}" if comparison.failure else report
