"""One more run, in which each op is executed again."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from samebits.comparison.replayed import replayed, with_evidence
from samebits.recording.notes import Note, NoteCode
from samebits.recording.replay import ReplaySummary
from samebits.recording.settings import RecordingSettings
from samebits.verification.series import Plan

if TYPE_CHECKING:
    from samebits.comparison.results import Comparison
    from samebits.verification.results import ScriptRun
    from samebits.verification.series import Series
    from samebits.verification.tools import Tools


def with_replay(
    series: Series, tools: Tools, comparison: Comparison, first: ScriptRun, times: int
) -> Comparison:
    """Run the script once more, each op executed again, and add what that showed.

    The verdict is that of the ordinary runs: an op that does not repeat need not reach the state.

    Args:
        series: makes the run.
        tools: compare it with the first run.
        comparison: the verdict.
        first: the first of the compared runs.
        times: how often each op is executed again.
    """
    settings = RecordingSettings(record="", replay=times)
    run = series.run(Plan("replay", "executing each operation again", settings, "replay"))
    summary = ReplaySummary.from_dict(run.info.replay) if run.info is not None else None
    notes = [*comparison.notes, *_ending(run)]
    if run.info is None or summary is None:
        return replace(comparison, notes=(*notes, Note.of(NoteCode.NOT_REPLAYED)))
    found = replayed(summary)
    notes += [note for note in run.info.notes if note not in notes]
    if comparison.verdict == "identical" and not _ending(run):
        notes += _against(tools, first, run, bool(found.findings))
    return with_evidence(replace(comparison, notes=tuple(notes)), found)


def _ending(run: ScriptRun) -> list[Note]:
    info = run.info
    if info is None or info.status in ("finished", "stopped"):
        return []
    return [Note.of(NoteCode.REPLAY_ENDED, info.failure or info.status)]


def _against(tools: Tools, first: ScriptRun, run: ScriptRun, unrepeated: bool) -> list[Note]:  # noqa: FBT001
    """Whether this run gave the bits of the others."""
    with tools.open_record(first.record) as a, tools.open_record(run.record) as b:
        comparison = tools.judge(a, b)
    if comparison.verdict != "different":
        return []
    return [Note.of(NoteCode.REPLAY_DIFFERED, unrepeated, comparison.reason)]
