"""What is known of a cause: one value for everything that the program decides by, and says."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from samebits.causes.cause import Cause, OriginKind
    from samebits.causes.patch_rules import PatchRule, PatchUse, Reach


@dataclass(frozen=True, slots=True)
class Advice:
    """What to do about one source of a cause.

    Args:
        text: the change, one sentence without a full stop.
        controls: names of the interventions (`samebits run --pin`) that do the same without a change of
            the code.
        pattern: a regular expression for the beginning of the source: the op of a draw such as `time.time`,
            or the op of the finding. Empty fits any.
        in_worker: it speaks of draws in the processes of a DataLoader.
    """

    text: str
    controls: tuple[str, ...]
    pattern: str = ""
    in_worker: bool = False


@dataclass(frozen=True, slots=True)
class InterventionEvidence:
    """An intervention that can take differences of a cause away.

    Args:
        intervention: its name.
        rank: how likely the cause is, among those for which the intervention is evidence, the smallest
            likeliest; None where identical runs with it are no evidence for it.
        acts: whether a finding or draw of the cause shows by itself that it can have acted.
    """

    intervention: str
    rank: int | None = 0
    acts: bool = True


@dataclass(frozen=True, slots=True)
class Specification:
    """One cause.

    Args:
        cause: which.
        sentence: what the line did, after its place. `{source}` is what gave the evidence, in parentheses,
            or empty; `{op}` the operation; `{taken}` the first, without parentheses,
            or the second.
        draws: how the names of the draws begin that show it.
        is_drawn: the sentence says what the line of the draw did, wherever the value went.
        interventions: sets of interventions to try, the likeliest first.
        evidence: what interventions say of it when they make runs identical.
        advice: what to do, the first that fits counts.
        library: the library whose generator was not seeded, as an RNG source is called; else empty.
        seeded_by: the intervention on a source of fresh numbers: with it, one pair of runs with a change is
            enough.
        never_alike: two runs with it are never alike by chance.
        acts_at_its_line: a draw of it at the line of a finding can have acted there.
        seen_as: the kind of origin that shows it without any draw.
        visible: its place may be seen in the source alone, on a line that no draw names.
        undrawn_calls: full names of the calls that bring it in and that are not drawn.
        patches: rules that change the source so that it goes away, and where each may be tried.
        no_patch: why none of these may find anything to change; empty where nothing better can be said.
        sentence_without_op: the sentence where no operation was found; empty for the same one.
    """

    cause: Cause
    sentence: str
    draws: tuple[str, ...] = ()
    is_drawn: bool = False
    interventions: tuple[tuple[str, ...], ...] = ()
    evidence: tuple[InterventionEvidence, ...] = ()
    advice: tuple[Advice, ...] = ()
    library: str = ""
    seeded_by: str = ""
    never_alike: bool = False
    acts_at_its_line: bool = False
    seen_as: OriginKind | None = None
    visible: bool = False
    undrawn_calls: tuple[str, ...] = ()
    patches: tuple[PatchUse, ...] = ()
    no_patch: str = ""
    sentence_without_op: str = ""

    def advice_for(self, source: str, *, in_worker: bool = False) -> Advice | None:
        """The first advice that fits a source.

        Args:
            source: the op of a draw or of a finding.
            in_worker: whether it was seen in the processes of a DataLoader.
        """
        fitting = (row for row in self.advice if in_worker or not row.in_worker)
        return next((row for row in fitting if re.match(row.pattern, source)), None)

    def patch_rules(self, *reaches: Reach) -> tuple[PatchRule, ...]:
        """The rules that may be tried there, in the order in which rules are tried."""
        rules = {use.rule for use in self.patches if use.reach in reaches}
        return tuple(sorted(rules, key=lambda rule: rule.value))
