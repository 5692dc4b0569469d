"""Measures how far values of two runs are apart, and replays operations."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from samebits.causes import OriginKind
from samebits.comparison.difference import captured_difference
from samebits.comparison.evidence import Evidence, EvidenceCode
from samebits.comparison.ops import positions
from samebits.comparison.replayed import replayed, with_evidence
from samebits.comparison.results import descriptions
from samebits.recording.replay_results import ReplaySummary
from samebits.recording.settings import RecordingSettings
from samebits.recording.substitution import CapturedEvents
from samebits.records.kinds import EventKind, Role
from samebits.records.notes import Note, NoteCode
from samebits.verification._state import Tools
from samebits.verification.plans import Pair, Plan
from samebits.verification.results import Purpose

if TYPE_CHECKING:
    from samebits.comparison.results import Finding, Origin
    from samebits.recording.substitution import Substitution
    from samebits.records.events import Event
    from samebits.records.reader import RecordReader
    from samebits.verification._state import Runner, State
    from samebits.verification.results import ScriptRun, Verification


def replay(state: State, runner: Runner) -> State:
    """Run the script once more with each op repeated, and add the result.

    The verdict is that of the ordinary runs: an op that does not repeat need not reach the state.
    """
    settings = RecordingSettings(record="", replay=runner.request.replay)
    run = runner.series.run(Plan("replay", "executing each operation again", settings, Purpose.REPLAY))
    comparison, info = state.comparison, run.info
    summary = ReplaySummary.from_dict(info.replay) if info is not None else None
    ending = _ending(run)
    notes = [*comparison.notes, *ending]
    if info is None or summary is None:
        notes.append(Note.of(NoteCode.NOT_REPLAYED))
        return replace(state, comparison=replace(comparison, notes=tuple(notes)))
    evidence = replayed(summary)
    notes += [note for note in info.notes if note not in notes]
    if comparison.verdict == "identical" and not ending:
        notes += _against(runner.tools, state.first, run, unrepeated=bool(evidence.findings))
    comparison = with_evidence(replace(comparison, notes=tuple(notes)), evidence)
    return replace(state, comparison=comparison)


def _ending(run: ScriptRun) -> list[Note]:
    """Note how the run ended if it did not end as it should."""
    info = run.info
    if info is None or info.status in ("finished", "stopped"):
        return []
    return [Note.of(NoteCode.REPLAY_ENDED, info.failure or info.status)]


def _against(tools: Tools, first: ScriptRun, run: ScriptRun, *, unrepeated: bool) -> list[Note]:
    """Note that this run did not give the bits of the first one, if so."""
    with tools.open_record(first.record) as a, tools.open_record(run.record) as b:
        comparison = tools.judge(a, b)
    if comparison.verdict != "different":
        return []
    return [Note.of(NoteCode.REPLAY_DIFFERED, unrepeated, comparison.reason)]


_CAPTURED_KINDS = (EventKind.OP, EventKind.BATCH)


def measure(state: State, tools: Tools) -> State:
    """Measure the differences whose values the op-level pair saved: those of its first operations.

    Args:
        state: with its origins.
        tools: open records.
    """
    localisation = state.localisation
    if localisation is None or localisation.pair is None or not is_located(state):
        return state
    pair = localisation.pair
    measured = tuple(_with_captured_values(each, tools, pair) for each in state.comparison.findings)
    return replace(state, comparison=replace(state.comparison, findings=measured))


def with_kept_values(verification: Verification) -> Verification:
    """Return the comparison of two records with the difference of the values that both kept at its findings.

    Args:
        verification: of two op-level records, as of `verify_records`.
    """
    first, second = verification.runs
    pair, comparison = Pair(first, second), verification.comparison
    if comparison.first_step is None:
        return verification
    findings = tuple(_with_captured_values(each, Tools(), pair) for each in comparison.findings)
    return replace(verification, comparison=replace(comparison, findings=findings))


def is_located(state: State) -> bool:
    """Tell whether the op-level pair showed origins."""
    origins = state.localisation.origins if state.localisation is not None else None
    return origins is not None and bool(origins.findings)


def lacks_difference(state: State) -> bool:
    """Tell whether the difference of the first origin's values is not known yet, and could be."""
    if not is_located(state):
        return False
    first = state.comparison.findings[0]
    if first.origin.origin_kind == OriginKind.CONTROL_FLOW:
        return False
    return first.origin.difference is None and None not in first.origin.events


def _with_captured_values(finding: Finding, tools: Tools, pair: Pair) -> Finding:
    """Return the finding with its difference if both runs saved the tensors; else as it was.

    A seeding has no tensors; those of the first draw after it are used.
    """
    if (
        finding.origin.difference is not None
        or finding.origin.origin_kind == OriginKind.CONTROL_FLOW
        or None in finding.origin.events
    ):
        return finding
    with tools.open_record(pair.first.record) as a, tools.open_record(pair.second.record) as b:
        first, second = _event(a, finding.origin, 0), _event(b, finding.origin, 1)
        if first is None or second is None or first.op != second.op:
            return finding
        return _with_difference(finding, a.captures(first.seq), b.captures(second.seq), first)


def _event(record: RecordReader, origin: Origin, run: int) -> Event | None:
    """Return the event of the finding in one run."""
    seq = origin.events[run]
    if seq is None:
        return None
    if origin.kind in _CAPTURED_KINDS:
        return record.event(seq)
    return draw_after(record, record.event(seq)) if origin.kind == EventKind.RNG else None


def measured_at(
    tools: Tools, pair: Pair, substitution: Substitution, finding: Finding, rules: range
) -> Finding:
    """Return a finding with the difference of the first of its values that differ between the runs.

    Args:
        tools: open records.
        pair: of the runs, the second of which was to be given the first's values.
        substitution: the rules of the replacement.
        finding: the origin.
        rules: numbers of its own rules.
    """
    with tools.open_record(pair.first.record) as a, tools.open_record(pair.second.record) as b:
        given, own = CapturedEvents(a, substitution), CapturedEvents(b, substitution)
        for number in sorted(rules, key=lambda number: substitution.rules[number].part != "draw"):
            theirs = own.first(number)
            if theirs is None:
                continue
            is_draw = substitution.rules[number].part == "draw"
            ours = given.first(number) if is_draw else given.get(number, theirs.event.thread, theirs.count)
            if ours is None:
                continue
            measured = _with_difference(finding, given.tensors(ours), own.tensors(theirs), ours.event)
            if measured.origin.difference is not None:
                return measured
    return finding


def draw_after(record: RecordReader, seeding: Event) -> Event | None:
    """Return the first op that draws random numbers after a seeding, in its step."""
    later = (event for event in record.events((EventKind.OP,), seeding.step) if event.seq > seeding.seq)
    return next((event for event in later if any(info.role == Role.RNG for info in event.tensors)), None)


def _with_difference(
    finding: Finding, ours: dict[int, bytes], theirs: dict[int, bytes], event: Event
) -> Finding:
    """Return the finding with the difference of the saved tensors, if there is one; else as it was.

    Args:
        finding: an origin.
        ours: what the first run saved of the event, as safetensors files, by position.
        theirs: the same of the second run.
        event: of the first run: the origin's own or, of a seeding, the first draw after it.
    """
    own = finding.origin.kind == event.kind
    wanted = set(
        finding.origin.positions if own else positions(event, Role.OUT)
    )  # and not the generator's state
    chosen = ours.keys() & wanted or ours.keys()
    pairs = {at for at, info in enumerate(event.tensors) if info.dtype.startswith("complex")}
    difference = captured_difference({at: ours[at] for at in chosen}, theirs, pairs)
    if difference is None or not difference.elements:
        return finding
    if own:
        return replace(finding, origin=replace(finding.origin, difference=difference))
    line = Evidence.of(EvidenceCode.FIRST_DRAW, event.op, event.site)
    origin = replace(finding.origin, difference=difference, outputs=descriptions(event, Role.OUT))
    return replace(finding, origin=origin).with_evidence(line)
