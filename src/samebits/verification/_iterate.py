"""The stage that finds all origins: run 2 goes on with the values of run 1."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from samebits.causes import Cause, OriginKind, specification_of
from samebits.comparison.evidence import Evidence, EvidenceCode
from samebits.recording.settings import RecordingSettings
from samebits.recording.substitution import Rule, Substitution, keeps_all, line_of
from samebits.records.kinds import EventKind, Level
from samebits.records.notes import Note, NoteCode
from samebits.verification._localise import failed, origins_of, unseeded_of
from samebits.verification._measure import draw_after, is_located, measured_at
from samebits.verification.plans import BudgetSpent, Pair, Plan
from samebits.verification.results import Purpose

if TYPE_CHECKING:
    from samebits.comparison.results import Finding, Origin, OriginSearch
    from samebits.records.events import Event
    from samebits.records.reader import RecordReader
    from samebits.verification._localise import Localisation
    from samebits.verification._state import Runner, State
    from samebits.verification.results import ScriptRun

MOST_ROUNDS = 4
MOST_ATTEMPTS = 3
_OF_VALUES = (NoteCode.NOT_PLACED, NoteCode.NO_SPACE)
# A difference of these kinds can be a mere consequence of one that remains.
_CONSEQUENCES = (OriginKind.CONTROL_FLOW, OriginKind.ORDER, OriginKind.NONE)
_VALUES = (EventKind.BATCH, EventKind.LOSS, EventKind.READ, EventKind.SAVE)
# How the values at an origin came in -> which values of its event are replaced. Another order of things, or
# another way through the program, leaves nothing that could be replaced.
_PARTS = {
    OriginKind.KERNEL: "out",
    OriginKind.ARGUMENT: "out",
    OriginKind.UNINITIALIZED: "out",
    OriginKind.OUTSIDE: "out",
    OriginKind.RNG: "state",
}


def iterate(state: State, runner: Runner) -> State:
    """Look for all origins, and measure by how much their values differ.

    Run 2 gets the values of run 1 at the origins known so far; what differs then are the next origins, and so
    on. The first round also tells by how much the values at each origin differ. Where there is nothing to
    replace, such as another order of operations, the values of the first origin are only compared.
    """
    searched, localisation = replace(state, searched=True), state.localisation
    # Where several threads make steps, the step number of an operation changes from run to run.
    if localisation is None or not is_located(state) or state.comparison.several_threads:
        return searched
    rounds = _Rounds(searched, runner, localisation)
    try:
        rounds.run()
    except BudgetSpent:
        rounds.notes.append(Note.of(NoteCode.ORIGINS_OUT_OF_TIME))
    # Where the runs agree in the end, a late value is a finding by now, or followed from one.
    earlier = (n for n in state.comparison.notes if not (rounds.agreed and n.code is NoteCode.LATE_VALUE))
    findings, notes = tuple(rounds.findings), (*earlier, *rounds.notes)
    return replace(searched, comparison=replace(state.comparison, findings=findings, notes=notes))


def hides_a_generator(state: State, runner: Runner) -> bool:
    """Tell whether no origin accounts for a draw from an unseeded generator: another may hide it."""
    findings, localisation = state.comparison.findings, state.localisation
    wanted = runner.request.intervene and localisation is not None and localisation.pair is not None
    first_is_one = bool(findings) and bool(specification_of(findings[0].cause).seeded_by)
    return wanted and first_is_one and not unseeded_of(state.drawn) <= {finding.cause for finding in findings}


class _Rounds:
    """The rounds of one search, each a pair of runs.

    Args:
        state: what is known where it begins.
        runner: makes the runs and compares them.
        localisation: the op-level pair that has the first origins.

    Attributes:
        findings: origins, those of the op-level pair first, with the difference of their values where it is
            known.
        notes: what could not be done.
        agreed: whether the last pair, with the values of all findings replaced, was identical.
    """

    def __init__(self, state: State, runner: Runner, localisation: Localisation) -> None:
        self._state = state
        self._series, self._tools = runner.series, runner.tools
        self._localisation = localisation
        self._rules: list[Rule] = []
        self._rule_numbers: list[range] = []  # numbers of the rules of each finding
        self._saver: ScriptRun | None = None
        self._saved_rules: tuple[Rule, ...] = ()
        self._behind: tuple[Rule, ...] = ()
        self.findings: list[Finding] = []
        self.notes: list[Note] = []
        self._pairs: list[Pair] = []
        self.agreed = False

    def run(self) -> None:
        pair, origins = self._localisation.pair, self._localisation.origins
        if origins is not None:  # with the differences that were measured already
            origins = replace(origins, findings=self._state.comparison.findings)
        for number in range(1, MOST_ROUNDS + 1):
            if pair is None or origins is None:
                return
            n_rules = len(self._rules)
            self._add(pair, self._fresh(pair, origins))
            self._behind = tuple(rule for late in origins.behind for rule in self._rules_for(pair, late))
            new = self._rules[n_rules:]
            replaceable = any(rule.replaces for rule in new)
            if not replaceable and (number > 1 or not new or self.findings[0].origin.difference is not None):
                return
            pair, origins = self._first_round() if number == 1 else self._round()
            self.agreed = replaceable and origins is None and not (_unplaced(pair) or failed(pair))
            if not replaceable:
                return

    def _fresh(self, pair: Pair, origins: OriginSearch) -> list[Finding]:
        """Return those findings of a pair that are neither known yet nor a mere consequence."""
        if not self.findings:
            return list(origins.findings)
        return [
            finding
            for finding in origins.findings
            if not (_unplaced(pair) and finding.origin.origin_kind in _CONSEQUENCES)
            and not self._is_known(pair, finding)
        ]

    def _is_known(self, pair: Pair, finding: Finding) -> bool:
        keys = {rule.key for rule in self._rules}
        rules = self._rules_for(pair, finding)
        if rules and all(rule.key in keys for rule in rules):
            return True
        return any(_is_of(finding, known) for known in self.findings)

    def _add(self, pair: Pair, fresh: list[Finding]) -> None:
        """Add findings, and the rules by which their values are replaced."""
        line: tuple[Evidence, ...] = ()
        if self.findings:
            first = self.findings[0]
            line = (Evidence.of(EvidenceCode.SEEN_ONCE_PLACED, first.origin.site, first.origin.op),)
        for finding in fresh:
            rules = self._rules_for(pair, finding)
            self._rule_numbers.append(range(len(self._rules), len(self._rules) + len(rules)))
            self._rules += rules
            self.findings.append(finding.with_evidence(*line))

    def _rules_for(self, pair: Pair, finding: Finding) -> tuple[Rule, ...]:
        open_record = self._tools.open_record
        with open_record(pair.first.record) as a, open_record(pair.second.record) as b:
            return _rules_for(a, b, finding.origin)

    def _first_round(self) -> tuple[Pair, OriginSearch | None]:
        """Make the first round; repeat it if a pair hid a race or did not fetch the first values."""
        for _ in range(MOST_ATTEMPTS):
            pair, origins = self._round()
            if (
                self.findings[0].origin.difference is not None
                or origins is not None
                or not self._rule_numbers[0]
            ):
                return pair, origins
        self.notes.append(Note.of(NoteCode.VALUES_NOT_FETCHED, MOST_ATTEMPTS))
        return pair, origins

    def _round(self) -> tuple[Pair, OriginSearch | None]:
        """Make one pair with all rules so far."""
        substitution = Substitution(tuple(self._rules), first_step=self._localisation.first_op_step)
        first = self._saving_run(substitution)
        pair = Pair(first, self._given(replace(substitution, source=first.record)))
        self._pairs.append(pair)
        self._take_notes(pair)
        if pair.first.info is None or pair.second.info is None:
            return pair, None
        self.findings = [
            finding
            if finding.origin.difference
            else measured_at(self._tools, pair, substitution, finding, rules)
            for finding, rules in zip(self.findings, self._rule_numbers, strict=True)
        ]
        until = self._series.deadline
        return pair, origins_of(pair, self._tools, self._state.excluded, self._explained(), until)

    def _saving_run(self, substitution: Substitution) -> ScriptRun:
        """Return a run that saved all the values: that of the op-level pair, an earlier one, or a new one.

        A new one also keeps what may turn out to be an origin in the next round.
        """
        pair = self._localisation.pair
        if pair is not None:
            with self._tools.open_record(pair.first.record) as record:
                if keeps_all(record, substitution):
                    return pair.first
        if self._saver is not None and set(substitution.rules) <= set(self._saved_rules):
            return self._saver
        self._saved_rules = tuple(dict.fromkeys((*substitution.rules, *self._behind)))
        settings = replace(self._settings(), substitution=replace(substitution, rules=self._saved_rules))
        name, description = f"values-{len(self._pairs) + 1}a", "keeping the values of the origins"
        self._saver = self._series.run(Plan(name, description, settings, Purpose.CAPTURE))
        return self._saver

    def _given(self, substitution: Substitution) -> ScriptRun:
        """Make a run that gets these values; where they are only compared, it goes to its end."""
        stops = any(rule.replaces for rule in substitution.rules)
        settings = replace(
            self._settings(),
            substitution=substitution,
            reference=substitution.source if stops else "",
        )
        number = len(self._pairs) + 1
        description = "going on with run 1's values" + (f", attempt {number}" if number > 1 else "")
        return self._series.run(
            Plan(f"values-{number}b", description, settings, Purpose.CAPTURE, self._state.role)
        )

    def _settings(self) -> RecordingSettings:
        localisation = self._localisation
        info = localisation.pair.first.info if localisation.pair is not None else None
        return RecordingSettings(
            record="",
            level=Level.OP if info is None else info.level,
            first_op_step=localisation.first_op_step,
            max_steps=self._last_step(),
            excluded=self._state.excluded,
        )

    def _last_step(self) -> int | None:
        localisation = self._localisation
        second = localisation.pair.second.info if localisation.pair is not None else None
        if localisation.max_steps is None and second is not None and second.status == "stopped":
            return second.steps
        return localisation.max_steps

    def _explained(self) -> tuple[tuple[Cause, str, int], ...]:
        """Return causes and lines of the known origins: their draws explain nothing else."""
        return tuple(
            (finding.cause, *line_of(finding.origin.site))
            for finding in self.findings
            if finding.cause != Cause.UNKNOWN
        )

    def _take_notes(self, pair: Pair) -> None:
        for run in (pair.first, pair.second):
            notes = () if run.info is None else run.info.notes
            self.notes += [n for n in notes if n.code in _OF_VALUES and n not in self.notes]


def _is_of(new: Finding, known: Finding) -> bool:
    """Tell whether a finding belongs to a known one: the same line, or its backward."""
    origin, other = new.origin, known.origin
    if origin.site is not None and line_of(origin.site) == line_of(other.site):
        return origin.op == other.op or new.cause == known.cause != Cause.UNKNOWN
    # For example, the backward of a slice taken at another index writes at another index too.
    behind = origin.forward_site is not None and line_of(origin.forward_site) == line_of(other.site)
    return behind and origin.origin_kind == other.origin_kind == OriginKind.ARGUMENT


def _unplaced(pair: Pair) -> bool:
    """Tell whether a difference remains because a value could not be replaced."""
    info = pair.second.info
    return info is None or any(note.code is NoteCode.NOT_PLACED for note in info.notes)


def _rules_for(a: RecordReader, b: RecordReader, origin: Origin) -> tuple[Rule, ...]:
    """Return the rules by which one run saves the values of an origin and another one uses them.

    Args:
        a: record of the first run of the pair that showed it.
        b: of the second.
        origin: where the difference entered.

    Returns:
        none where the runs did different things: there are no two values. A rule that does not replace only
        shows by how much they differ.
    """
    seq = origin.events[0]
    if seq is None or origin.events[1] is None or origin.origin_kind == OriginKind.CONTROL_FLOW:
        return ()
    event = a.event(seq)
    rule = _rule(event)
    if origin.kind in _VALUES:
        is_batch = origin.kind == EventKind.BATCH and origin.origin_kind == OriginKind.BATCH
        return (replace(rule, part="value", replaces=is_batch),)
    if origin.kind == EventKind.RNG:
        draw = draw_after(a, event)
        shown = () if draw is None else (replace(_rule(draw), part="draw", replaces=False),)
        return (replace(rule, part="state"), *shown)
    if origin.kind != EventKind.OP:
        return ()
    if origin.origin_kind == OriginKind.OUTSIDE and origin.entered:
        return (replace(rule, part="in", positions=origin.entered),)
    backward = _backward_rules(a, b, event) if origin.origin_kind == OriginKind.ARGUMENT else ()
    return (
        replace(rule, part=_PARTS.get(origin.origin_kind, "out"), replaces=origin.origin_kind in _PARTS),
        *backward,
    )


def _rule(event: Event) -> Rule:
    return Rule(event.kind, event.op, *line_of(event.site), *line_of(event.forward_site))


def _backward_rules(a: RecordReader, b: RecordReader, event: Event) -> tuple[Rule, ...]:
    """Return rules for backward ops that get an argument that differs from autograd, such as a factor."""
    ours, theirs = (_backward_arguments(record, event) for record in (a, b))
    return tuple(rule for rule, texts in ours.items() if texts != theirs.get(rule, texts))


def _backward_arguments(record: RecordReader, event: Event) -> dict[Rule, list[str]]:
    """Return the arguments of the backward ops of an event's line, in its step."""
    arguments: dict[Rule, list[str]] = {}
    for other in record.events((EventKind.OP,), event.step, event.step):
        if other.forward_site is not None and line_of(other.forward_site) == line_of(event.site):
            arguments.setdefault(_rule(other), []).append(other.arguments)
    return arguments
