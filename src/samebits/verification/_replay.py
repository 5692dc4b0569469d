"""The stage of one more run, in which each op is executed again."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from samebits.comparison.replayed import replayed, with_evidence
from samebits.recording.replay_results import ReplaySummary
from samebits.recording.settings import RecordingSettings
from samebits.records.notes import Note, NoteCode
from samebits.verification.results import Purpose
from samebits.verification.series import Plan

if TYPE_CHECKING:
    from samebits.verification._state import Runner, State
    from samebits.verification._tools import Tools
    from samebits.verification.results import ScriptRun


def replay(state: State, runner: Runner) -> State:
    """Run the script once more, each op executed again, and add what that showed.

    The verdict is that of the ordinary runs: an op that does not repeat need not reach the state.
    """
    settings = RecordingSettings(record="", replay=runner.request.replay)
    run = runner.series.run(Plan("replay", "executing each operation again", settings, Purpose.REPLAY))
    comparison, info = state.comparison, run.info
    summary = ReplaySummary.from_dict(info.replay) if info is not None else None
    notes = [*comparison.notes, *_ending(run)]
    if info is None or summary is None:
        notes.append(Note.of(NoteCode.NOT_REPLAYED))
        return replace(state, comparison=replace(comparison, notes=tuple(notes)))
    evidence = replayed(summary)
    notes += [note for note in info.notes if note not in notes]
    if comparison.verdict == "identical" and not _ending(run):
        notes += _against(runner.tools, state.first, run, bool(evidence.findings))
    comparison = with_evidence(replace(comparison, notes=tuple(notes)), evidence)
    return replace(state, comparison=comparison)


def _ending(run: ScriptRun) -> list[Note]:
    info = run.info
    if info is None or info.status in ("finished", "stopped"):
        return []
    return [Note.of(NoteCode.REPLAY_ENDED, info.failure or info.status)]


def _against(tools: Tools, first: ScriptRun, run: ScriptRun, unrepeated: bool) -> list[Note]:  # noqa: FBT001
    """Note if this run did not give the bits of the others."""
    with tools.open_record(first.record) as a, tools.open_record(run.record) as b:
        comparison = tools.judge(a, b)
    if comparison.verdict != "different":
        return []
    return [Note.of(NoteCode.REPLAY_DIFFERED, unrepeated, comparison.reason)]
