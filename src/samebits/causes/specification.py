"""The specification of a cause: one value with all facts and texts about it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from samebits.causes.cause import Cause, OriginKind
    from samebits.causes.patch_rules import PatchRule, PatchUse, Reach


@dataclass(frozen=True, slots=True)
class Advice:
    """Advice on one source of a cause.

    Args:
        text: the change, one sentence without a full stop.
        controls: names of the interventions (`samebits run --pin`) that do the same without a change of
            the code.
        pattern: a regular expression for the beginning of the source: the op of a draw such as `time.time`,
            or the op of the finding. Empty fits any.
        in_worker: whether it is about draws in the worker processes of a DataLoader.
    """

    text: str
    controls: tuple[str, ...]
    pattern: str = ""
    in_worker: bool = False


@dataclass(frozen=True, slots=True)
class InterventionEvidence:
    """An intervention that can remove differences of a cause.

    Args:
        intervention: its name.
        rank: how likely the cause is among those that the intervention shows, 0 for the likeliest; None where
            identical runs with it are no evidence for the cause.
        acts: whether a finding or draw of the cause shows by itself that the intervention can have acted.
    """

    intervention: str
    rank: int | None = 0
    acts: bool = True


@dataclass(frozen=True, slots=True)
class Specification:
    """One cause.

    Args:
        cause: the cause.
        sentence: what the line did, to follow its location. `{source}` is the source of the evidence in
            parentheses, or empty; `{op}` is the operation; `{taken}` is the source without parentheses, or
            the operation.
        draws: the beginnings of the names of draws that show it.
        is_drawn: whether the sentence is about the line of the draw, wherever the value went.
        interventions: sets of interventions to try, the likeliest first.
        evidence: the interventions that show it when they make runs identical.
        advice: advice by source; the first that fits counts.
        library: the library whose generator was not seeded, by the name of its RNG source; else empty.
        seeded_by: the intervention on a source of fresh numbers: with it, one pair of runs with a change is
            enough.
        never_alike: whether two runs with it are never equal by chance.
        acts_at_its_line: whether a draw of it at the line of a finding can have acted there.
        seen_as: the kind of origin that shows it without any draw.
        visible: whether its line may show in the source code alone, without any draw.
        undrawn_calls: full names of calls that cause it and that are not recorded as draws.
        patches: rules that change source code to remove it, and where each may be tried.
        no_patch: a reason why none of these may apply; empty where nothing specific can be said.
        sentence_without_op: the sentence where no operation is known; empty for the same one.
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
        """Return the first advice that fits a source.

        Args:
            source: the op of a draw or of a finding.
            in_worker: whether the draw was in a worker process of a DataLoader.
        """
        fitting = (row for row in self.advice if in_worker or not row.in_worker)
        return next((row for row in fitting if re.match(row.pattern, source)), None)

    def patch_rules(self, *reaches: Reach) -> tuple[PatchRule, ...]:
        """Return the rules with one of these reaches, in the order in which rules are tried."""
        rules = {use.rule for use in self.patches if use.reach in reaches}
        return tuple(sorted(rules, key=lambda rule: rule.value))
