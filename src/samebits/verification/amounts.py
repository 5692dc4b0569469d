"""By how much the values at an origin differ, from what two runs kept of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from samebits.comparison.difference import captured_difference
from samebits.comparison.evidence import Evidence, EvidenceCode
from samebits.comparison.ops import positions
from samebits.comparison.results import descriptions

if TYPE_CHECKING:
    from samebits.comparison.results import Finding
    from samebits.recording.events import Event
    from samebits.verification.tools import OpenRecord


def with_amount(finding: Finding, ours: dict[int, bytes], theirs: dict[int, bytes], event: Event) -> Finding:
    """The finding with the difference of the kept tensors, if there is one; else as it was.

    Args:
        finding: an origin.
        ours: what the first run kept of the event, as safetensors files, by position.
        theirs: the same of the second run.
        event: of the first run: the origin's own or, of a seeding, the first draw after it.
    """
    own = finding.kind == event.kind
    wanted = set(finding.positions if own else positions(event, "out"))  # and not the generator's state
    chosen = ours.keys() & wanted or ours.keys()
    pairs = {at for at, info in enumerate(event.tensors) if info.dtype.startswith("complex")}
    difference = captured_difference({at: ours[at] for at in chosen}, theirs, pairs)
    if difference is None or not difference.elements:
        return finding
    if own:
        return replace(finding, difference=difference)
    line = Evidence.of(EvidenceCode.FIRST_DRAW, event.op, event.site)
    outputs = descriptions(event, "out")
    return replace(finding, difference=difference, outputs=outputs, evidence=(*finding.evidence, line))


def draw_after(record: OpenRecord, seeding: Event) -> Event | None:
    """The first op that draws random numbers after a seeding, in its step."""
    later = (event for event in record.events(("op",), seeding.step) if event.seq > seeding.seq)
    return next((event for event in later if any(info.role == "rng" for info in event.tensors)), None)
