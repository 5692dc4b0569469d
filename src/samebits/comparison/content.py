"""Finds what made a tensor by its contents, where its memory does not tell."""

from __future__ import annotations

from typing import TYPE_CHECKING

from samebits.comparison.ops import brings, positions
from samebits.comparison.points import Point

if TYPE_CHECKING:
    from samebits.comparison.lookup import EventCache, Lookup
    from samebits.recording.events import Event

_NEARBY = 4096  # events looked back over


def made_by(lookup: Lookup, point: Point) -> tuple[Event, Event] | None:
    """The last event of both runs that gave the contents of a tensor, if it is the same event.

    A batch collated in the main process, a sparse tensor and a value that went through NumPy have no writer
    on record, but an op may have given just these contents shortly before, in both runs.
    """
    a, b = lookup.a.get(point.seq_a), lookup.b.get(point.seq_b)
    if a is None or b is None:
        return None
    first = _last_with(lookup.a, a.seq, a.digests[point.position_a])
    second = _last_with(lookup.b, b.seq, b.digests[point.position_b])
    if first is None or second is None or not lookup.partners(first, second):
        return None
    return first, second


def other_part(lookup: Lookup, point: Point) -> tuple[Event, Event] | None:
    """The first view of a tensor's memory that was taken elsewhere in each run: by other arguments.

    What is written through such views may be the same, and the whole differs.
    """
    links, found = point.links(lookup), None
    if links is None:
        return None
    for seq in range(point.seq_a - 1, max(-1, point.seq_a - _NEARBY), -1):
        event = lookup.a.get(seq)
        if event is None or event.kind != "op" or not _is_view_of(event, links[0].memory):
            continue
        partner = lookup.partner_in_b(event)
        twin = None if partner is None else lookup.b.get(partner)
        if twin is not None and twin.arguments != event.arguments and _is_view_of(twin, links[1].memory):
            found = event, twin
    return found


def _is_view_of(event: Event, memory: int) -> bool:
    of = {info.role for info, link in zip(event.tensors, event.links, strict=False) if link.memory == memory}
    return {"in", "out"} <= of


def gave_the_same(a: Event, b: Event) -> bool:
    """Whether an event gave the same in both runs: then the choice of an output made the difference."""
    role = "out" if a.kind == "op" else "value"
    return [a.digests[i] for i in positions(a, role)] == [b.digests[i] for i in positions(b, role)]


def behind_batch(lookup: Lookup, a: Event, b: Event) -> tuple[list[Point], list[tuple[Event, Event]]]:
    """What the tensors of a batch that differ come from, as far as it is on record.

    The main process unpickles a worker's tensors at the loader's line: that makes nothing.

    Returns:
        tensors whose memory was written before, and events of both runs that gave the same contents as the
        batch, and not the same as each other.
    """
    points = [
        Point(a.seq, i, b.seq, i)
        for i in positions(a, "value")
        if i < min(len(a.links), len(b.links), len(b.digests)) and a.digests[i] != b.digests[i]
    ]
    linked = [
        p for p in points if _written(lookup.a, a, p.position_a) and _written(lookup.b, b, p.position_b)
    ]
    makers = [maker for maker in (made_by(lookup, p) for p in points) if maker is not None]
    return linked, [m for m in makers if not _unpickled(a, m[0]) and not gave_the_same(*m)]


def _written(cache: EventCache, batch: Event, position: int) -> bool:
    writer = cache.get(batch.links[position].writer)
    return writer is not None and not _unpickled(batch, writer)


def _unpickled(batch: Event, maker: Event) -> bool:
    return brings(maker) and maker.site == batch.site


def draws_at_site(lookup: Lookup, a: Event) -> list[tuple[Event, Event]]:
    """The draws at the line of an event, before it, that gave other numbers in each run: a loader's own."""
    found = []
    for seq in range(a.seq - 1, max(-1, a.seq - _NEARBY), -1):
        event = lookup.a.get(seq)
        if event is None or event.site != a.site or not positions(event, "rng"):
            continue
        partner = lookup.partner_in_b(event)
        twin = None if partner is None else lookup.b.get(partner)
        if twin is not None and _drawn(twin) != _drawn(event):
            found.append((event, twin))
    return found


def _drawn(event: Event) -> list[bytes]:
    """The generator's state and the numbers; what the memory held before is no part of a draw."""
    return [event.digests[i] for i in (*positions(event, "rng"), *positions(event, "out"))]


def _last_with(cache: EventCache, before: int, digest: bytes) -> Event | None:
    for seq in range(before - 1, max(-1, before - _NEARBY), -1):
        event = cache.get(seq)
        if event is None or event.kind not in ("op", "batch"):
            continue
        given = positions(event, "out" if event.kind == "op" else "value")
        if any(event.digests[i] == digest for i in given):
            return event
    return None
