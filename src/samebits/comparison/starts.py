"""Where the search for an origin begins: at the states, reads and saves that differ first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from samebits.causes import OriginKind
from samebits.comparison import entries
from samebits.comparison.evidence import Evidence, EvidenceCode
from samebits.comparison.points import Point

if TYPE_CHECKING:
    from collections.abc import Iterator

    from samebits.comparison.results import Finding
    from samebits.comparison.sources import Record
    from samebits.comparison.survey import Survey


def start_points(found: Survey) -> tuple[list[tuple[str, Point]], list[Finding]]:
    """The state tensors that differ, and findings about those that only one run has."""
    starts, one_sided = [], []
    for pair in found.first.state.pairs if found.first else ():
        if pair.a is not None and pair.b is not None:
            starts.append(
                (pair.name, Point(pair.a.event.seq, pair.a.position, pair.b.event.seq, pair.b.position))
            )
        else:
            which = "first" if pair.b is None else "second"
            line = Evidence.of(EvidenceCode.ONE_SIDED_TENSOR, which, pair.text())
            a, b = (place.event if place else None for place in (pair.a, pair.b))
            one_sided.append(entries.finding(a, b, OriginKind.CONTROL_FLOW, evidence=(line,)))
    return starts, one_sided


def read_points(a: Record, b: Record, found: Survey) -> list[Point]:
    """The reads that differ."""
    return [point for point, kind in _output_points(a, b, found) if kind == "read"]


def save_points(a: Record, b: Record, found: Survey) -> list[Point]:
    """The saves that differ."""
    return [point for point, kind in _output_points(a, b, found) if kind == "save"]


def _output_points(a: Record, b: Record, found: Survey) -> Iterator[tuple[Point, str]]:
    pairs = found.first.outputs.differing if found.first else [found.unmatched] if found.unmatched else []
    for seq_a, seq_b in pairs:
        ours, theirs = a.event(seq_a), b.event(seq_b)
        for i, (x, y) in enumerate(zip(ours.digests, theirs.digests, strict=False)):
            if x != y:
                yield Point(seq_a, i, seq_b, i), ours.kind


def last_steps(a: Record, b: Record, found: Survey) -> tuple[int, int]:
    """The last step of each run that is looked at: the first that differs."""
    if found.first is None:
        return a.info.steps, b.info.steps
    return found.first.a.last, found.first.b.last
