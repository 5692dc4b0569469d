"""What is put in the place of an origin, and by how much the values there differed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from samebits.causes import OriginKind
from samebits.recording.substitution import KeptEvents, Rule, spot
from samebits.verification.amounts import draw_after, with_amount

if TYPE_CHECKING:
    from samebits.comparison.results import Finding
    from samebits.recording.events import Event
    from samebits.recording.substitution import Substitution
    from samebits.verification.series import Pair
    from samebits.verification.tools import OpenRecord, Tools

_VALUES = ("batch", "loss", "read", "save")
# How the values at an origin came in -> what of its event is put in place. What came by another order of
# things, or by another way through the program, has nothing that could be put there.
_PARTS = {
    OriginKind.KERNEL: "out",
    OriginKind.ARGUMENT: "out",
    OriginKind.UNINITIALIZED: "out",
    OriginKind.OUTSIDE: "out",
    OriginKind.RNG: "state",
}


def rules_for(a: OpenRecord, b: OpenRecord, finding: Finding) -> tuple[Rule, ...]:
    """By which rules the values of an origin are kept in one run and put in place in another.

    Args:
        a: record of the first run of the pair that showed it.
        b: of the second.
        finding: the origin.

    Returns:
        none where the runs did different things: there are no two values. A rule that does not place only
        shows by how much they differ.
    """
    seq = finding.events[0]
    if seq is None or finding.events[1] is None or finding.entry == OriginKind.CONTROL_FLOW:
        return ()
    event = a.event(seq)
    rule = _rule(event)
    if finding.kind in _VALUES:
        is_batch = finding.kind == "batch" and finding.entry == OriginKind.BATCH
        return (replace(rule, part="value", place=is_batch),)
    if finding.kind == "rng":
        draw = draw_after(a, event)
        shown = () if draw is None else (replace(_rule(draw), part="draw", place=False),)
        return (replace(rule, part="state"), *shown)
    if finding.kind != "op":
        return ()
    if finding.entry == OriginKind.OUTSIDE and finding.entered:
        return (replace(rule, part="in", positions=finding.entered),)
    backward = _backward_rules(a, b, event) if finding.entry == OriginKind.ARGUMENT else ()
    return (replace(rule, part=_PARTS.get(finding.entry, "out"), place=finding.entry in _PARTS), *backward)


def measured(tools: Tools, pair: Pair, substitution: Substitution, finding: Finding, rules: range) -> Finding:
    """A finding with the difference of the first values of its place that were not the same in both runs.

    Args:
        tools: open records.
        pair: of the runs, the second of which was to be given the first's values.
        substitution: by what rules.
        finding: the origin.
        rules: numbers of its own rules.
    """
    with tools.open_record(pair.first.record) as a, tools.open_record(pair.second.record) as b:
        kept, own = KeptEvents(a, substitution), KeptEvents(b, substitution)
        for number in sorted(rules, key=lambda number: substitution.rules[number].part != "draw"):
            theirs = own.first(number)
            if theirs is None:
                continue
            is_draw = substitution.rules[number].part == "draw"
            ours = kept.first(number) if is_draw else kept.get(number, theirs.event.thread, theirs.count)
            if ours is None:
                continue
            found = with_amount(finding, kept.tensors(ours), own.tensors(theirs), ours.event)
            if found.difference is not None:
                return found
    return finding


def _rule(event: Event) -> Rule:
    return Rule(event.kind, event.op, *spot(event.site), *spot(event.forward_site))


def _backward_rules(a: OpenRecord, b: OpenRecord, event: Event) -> tuple[Rule, ...]:
    """Rules for the backward ops to which autograd hands on an argument that differs, such as a factor."""
    ours, theirs = (_backward_arguments(record, event) for record in (a, b))
    return tuple(rule for rule, texts in ours.items() if texts != theirs.get(rule, texts))


def _backward_arguments(record: OpenRecord, event: Event) -> dict[Rule, list[str]]:
    """The arguments of the backward ops of an event's line, in its step."""
    found: dict[Rule, list[str]] = {}
    for other in record.events(("op",), event.step, event.step):
        if other.forward_site is not None and spot(other.forward_site) == spot(event.site):
            found.setdefault(_rule(other), []).append(other.arguments)
    return found
