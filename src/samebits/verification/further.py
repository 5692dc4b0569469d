"""All origins, not only the first: run 2 goes on with the values of run 1 put in place of its own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from samebits.causes import Cause, OriginKind
from samebits.comparison.evidence import Evidence, EvidenceCode
from samebits.recording.notes import Note, NoteCode
from samebits.recording.settings import RecordingSettings
from samebits.recording.substitution import Rule, Substitution, keeps_all, spot
from samebits.verification.localise import failed, origins_of
from samebits.verification.series import BudgetSpent, Pair, Plan
from samebits.verification.substitutes import measured, rules_for

if TYPE_CHECKING:
    from samebits.comparison.results import Finding, Origins
    from samebits.verification.localise import Localisation
    from samebits.verification.results import ScriptRun
    from samebits.verification.series import Series
    from samebits.verification.tools import Tools

MOST_ROUNDS = 4
MOST_ATTEMPTS = 3
_OF_VALUES = (NoteCode.NOT_PLACED, NoteCode.NO_ROOM)
_WAYS = (
    OriginKind.CONTROL_FLOW,
    OriginKind.ORDER,
    OriginKind.NONE,
)  # such a difference can be a mere consequence of one that remains


@dataclass(frozen=True)
class Search:
    """Where the search begins.

    Args:
        found: what the op-level pair showed.
        role: which of the compared runs differed from the first.
        excused: names of state tensors that are left out.
    """

    found: Localisation
    role: int
    excused: tuple[str, ...] = ()


@dataclass(frozen=True)
class AllOrigins:
    """What the rounds showed.

    Args:
        findings: origins, those of the op-level pair first, with the difference of their values where it is
            known.
        notes: what could not be done.
        pairs: the pairs that were run.
        agreed: whether the last pair, with the values of all findings put in place, was identical.
    """

    findings: tuple[Finding, ...]
    notes: tuple[Note, ...] = ()
    pairs: tuple[Pair, ...] = ()
    agreed: bool = False


def all_origins(series: Series, tools: Tools, search: Search) -> AllOrigins:
    """Put run 1's values in place at the origins known so far, look for the next ones, and so on.

    The first round also tells by how much the values at each origin differ. Where there is nothing to put in
    place, such as another order of operations, the values of the first origin are only compared.

    Args:
        series: makes the runs.
        tools: compare them.
        search: where it begins.
    """
    rounds = _Rounds(series, tools, search)
    try:
        rounds.run()
    except BudgetSpent:
        rounds.notes.append(Note.of(NoteCode.ORIGINS_OUT_OF_TIME))
    return AllOrigins(tuple(rounds.findings), tuple(rounds.notes), tuple(rounds.pairs), rounds.agreed)


class _Rounds:
    def __init__(self, series: Series, tools: Tools, search: Search) -> None:
        self._series = series
        self._tools = tools
        self._search = search
        self._rules: list[Rule] = []
        self._own: list[range] = []  # numbers of the rules of each finding
        self._keeper: ScriptRun | None = None
        self._kept: tuple[Rule, ...] = ()
        self._behind: tuple[Rule, ...] = ()
        self.findings: list[Finding] = []
        self.notes: list[Note] = []
        self.pairs: list[Pair] = []
        self.agreed = False

    def run(self) -> None:
        pair, origins = self._search.found.pair, self._search.found.origins
        for number in range(1, MOST_ROUNDS + 1):
            if pair is None or origins is None:
                return
            n_rules = len(self._rules)
            self._add(pair, self._fresh(pair, origins))
            self._behind = tuple(rule for late in origins.behind for rule in self._rules_for(pair, late))
            new = self._rules[n_rules:]
            replaceable = any(rule.place for rule in new)
            if not replaceable and (number > 1 or not new or self.findings[0].difference is not None):
                return
            pair, origins = self._first_round() if number == 1 else self._round()
            self.agreed = replaceable and origins is None and not (_unplaced(pair) or failed(pair))
            if not replaceable:
                return

    def _fresh(self, pair: Pair, origins: Origins) -> list[Finding]:
        """The findings of a pair that are not known yet, nor a mere consequence."""
        if not self.findings:
            return list(origins.findings)
        return [
            found
            for found in origins.findings
            if not (_unplaced(pair) and found.entry in _WAYS) and not self._is_known(pair, found)
        ]

    def _is_known(self, pair: Pair, found: Finding) -> bool:
        places = {rule.where for rule in self._rules}
        rules = self._rules_for(pair, found)
        if rules and all(rule.where in places for rule in rules):
            return True
        return any(_is_of(found, known) for known in self.findings)

    def _add(self, pair: Pair, fresh: list[Finding]) -> None:
        """Take in findings, and the rules by which their values are put in place."""
        line: tuple[Evidence, ...] = ()
        if self.findings:
            first = self.findings[0]
            line = (Evidence.of(EvidenceCode.SEEN_ONCE_PLACED, first.site, first.op),)
        for found in fresh:
            rules = self._rules_for(pair, found)
            self._own.append(range(len(self._rules), len(self._rules) + len(rules)))
            self._rules += rules
            self.findings.append(replace(found, evidence=(*found.evidence, *line)))

    def _rules_for(self, pair: Pair, found: Finding) -> tuple[Rule, ...]:
        open_record = self._tools.open_record
        with open_record(pair.first.record) as a, open_record(pair.second.record) as b:
            return rules_for(a, b, found)

    def _first_round(self) -> tuple[Pair, Origins | None]:
        """A race may hide in one pair, and there are the values of the first origin to show."""
        for _ in range(MOST_ATTEMPTS):
            pair, origins = self._round()
            if self.findings[0].difference is not None or origins is not None or not self._own[0]:
                return pair, origins
        self.notes.append(Note.of(NoteCode.VALUES_NOT_FETCHED, MOST_ATTEMPTS))
        return pair, origins

    def _round(self) -> tuple[Pair, Origins | None]:
        """One pair with all rules so far."""
        substitution = Substitution(tuple(self._rules), first_step=self._search.found.first_op_step)
        first = self._kept_by(substitution)
        pair = Pair(first, self._given(replace(substitution, source=first.record)))
        self.pairs.append(pair)
        self._take_notes(pair)
        if pair.first.info is None or pair.second.info is None:
            return pair, None
        self.findings = [
            found if found.difference else measured(self._tools, pair, substitution, found, rules)
            for found, rules in zip(self.findings, self._own, strict=True)
        ]
        until = self._series.deadline
        return pair, origins_of(pair, self._tools, self._search.excused, self._explained(), until)

    def _kept_by(self, substitution: Substitution) -> ScriptRun:
        """A run that kept the values: that of the op-level pair, or an earlier one, if it kept all of them.

        A new one also keeps what may turn out to be an origin in the next round.
        """
        pair = self._search.found.pair
        if pair is not None:
            with self._tools.open_record(pair.first.record) as record:
                if keeps_all(record, substitution):
                    return pair.first
        if self._keeper is not None and set(substitution.rules) <= set(self._kept):
            return self._keeper
        self._kept = tuple(dict.fromkeys((*substitution.rules, *self._behind)))
        settings = replace(self._settings(), substitution=replace(substitution, rules=self._kept))
        name, words = f"values-{len(self.pairs) + 1}a", "keeping the values of the origins"
        self._keeper = self._series.run(Plan(name, words, settings, "capture"))
        return self._keeper

    def _given(self, substitution: Substitution) -> ScriptRun:
        """A run that is given them; it goes to the end where they are only compared."""
        stops = any(rule.place for rule in substitution.rules)
        settings = replace(
            self._settings(),
            substitution=substitution,
            reference=substitution.source if stops else "",
        )
        number = len(self.pairs) + 1
        words = "going on with run 1's values" + (f", attempt {number}" if number > 1 else "")
        return self._series.run(Plan(f"values-{number}b", words, settings, "capture", self._search.role))

    def _settings(self) -> RecordingSettings:
        found = self._search.found
        info = found.pair.first.info if found.pair is not None else None
        return RecordingSettings(
            record="",
            level="op" if info is None else info.level,
            first_op_step=found.first_op_step,
            max_steps=self._last_step(),
            excused=self._search.excused,
        )

    def _last_step(self) -> int | None:
        found = self._search.found
        second = found.pair.second.info if found.pair is not None else None
        if found.max_steps is None and second is not None and second.status == "stopped":
            return second.steps
        return found.max_steps

    def _explained(self) -> tuple[tuple[Cause, str, int], ...]:
        """Causes and lines of the origins so far: their draws are not the reason of anything more."""
        return tuple(
            (found.cause, *spot(found.site)) for found in self.findings if found.cause != Cause.UNKNOWN
        )

    def _take_notes(self, pair: Pair) -> None:
        for run in (pair.first, pair.second):
            notes = () if run.info is None else run.info.notes
            self.notes += [n for n in notes if n.code in _OF_VALUES and n not in self.notes]


def _is_of(found: Finding, known: Finding) -> bool:
    """Whether a finding belongs to one that is known: the same line, or its backward."""
    if found.site is not None and spot(found.site) == spot(known.site):
        return found.op == known.op or found.cause == known.cause != Cause.UNKNOWN
    # The backward of a slice that was taken elsewhere, say, goes elsewhere too.
    behind = found.forward_site is not None and spot(found.forward_site) == spot(known.site)
    return behind and found.entry == known.entry == OriginKind.ARGUMENT


def _unplaced(pair: Pair) -> bool:
    """Whether a difference remains for want of a value that could be put in its place."""
    info = pair.second.info
    return info is None or any(note.code is NoteCode.NOT_PLACED for note in info.notes)
