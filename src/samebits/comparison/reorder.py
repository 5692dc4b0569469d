"""Recognises the same writes to one memory in another order, and threads that touch the same memory."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from samebits.comparison.ops import base_name, positions, previous_writer, read_inputs, written

if TYPE_CHECKING:
    from collections.abc import Iterator

    from samebits.comparison.lookup import EventCache, Lookup
    from samebits.recording.events import Event

_MOST_WRITES = 512
_NEARBY = 48  # events to each side


def reordered(lookup: Lookup, a: Event, b: Event) -> set[str] | None:
    """Whether two in-place writes are the ends of the same writes in another order.

    Both chains of writes are walked back together. As soon as both have contributed the same values, in
    another order, they are a reordering; where the memory held the same before, the walk ends.

    Returns:
        The threads that wrote; None if the chains are not a reordering.
    """
    memories = _accumulated(a), _accumulated(b)
    if None in memories:
        return None
    balance: Counter[object] = Counter()
    chains = [_chain(c, e, m) for c, e, m in zip((lookup.a, lookup.b), (a, b), memories, strict=True)]
    moved, threads = False, set()
    for ours, theirs in zip(*chains, strict=False):
        threads |= {ours.thread, theirs.thread}
        moved |= ours.contribution != theirs.contribution
        balance[ours.contribution] += 1
        balance[theirs.contribution] -= 1
        if not any(balance.values()):
            return threads if moved else None
        if ours.before == theirs.before:  # the memory held the same before these writes
            return None
    return None


def accumulates(cache: EventCache, event: Event) -> bool:
    """Whether an op reads what the same line of code made before, as `total = total + x` does."""
    made = [cache.get(event.links[i].writer) for i in read_inputs(event) if i < len(event.links)]
    return any(other is not None and (other.op, other.site) == (event.op, event.site) for other in made)


def nearby_threads(cache: EventCache, event: Event) -> set[str]:
    """Names of other threads that wrote what an op wrote in place, or soon after it what it read."""
    memories = {link.memory for link in event.links}
    accumulated = _accumulated(event)
    found = set()
    for seq in range(event.seq - _NEARBY, event.seq + _NEARBY + 1):
        other = cache.get(seq) if seq >= 0 else None
        if other is None or other.thread == event.thread or other.kind != "op":
            continue
        left = {other.links[i].memory for i in positions(other, "out") if i < len(other.links)}
        if accumulated in left or (seq > event.seq and left & memories):
            found.add(other.thread)
    return found


def _accumulated(event: Event) -> int | None:
    """The memory that an op reads and writes in place; None when it does not."""
    if event.kind != "op" or not event.links:
        return None
    read = {event.links[i].memory for i in read_inputs(event)}
    return next(
        (event.links[i].memory for i in positions(event, "out") if event.links[i].memory in read), None
    )


class _Write(NamedTuple):
    contribution: object
    before: bytes | None
    thread: str


def _chain(cache: EventCache, event: Event, memory: int | None) -> Iterator[_Write]:
    """Of each write to a memory, the last first: what it contributed, and what the memory held before."""
    writer: Event | None = event
    for _ in range(_MOST_WRITES):
        if writer is None or memory is None or not written(writer, memory):
            return
        before = _before(writer, memory)
        yield _Write(_contribution(writer, memory), before, writer.thread)
        if before is None:
            return
        writer = cache.get(previous_writer(writer, memory))


def _contribution(event: Event, memory: int) -> object:
    """What a write added: of an addition the other operand, of a write that reads nothing there, itself."""
    reads = read_inputs(event)
    if all(event.links[i].memory != memory for i in reads):
        return event.digests[written(event, memory)[0]]
    others = tuple(event.digests[i] for i in reads if event.links[i].memory != memory)
    plain = base_name(event.op) in ("add_", "_foreach_add_") and len(others) == 1
    return others[0] if plain else (base_name(event.op), others, event.arguments)


def _before(event: Event, memory: int) -> bytes | None:
    """What a memory held before a write that used it; None for one that did not."""
    held = [event.digests[i] for i in read_inputs(event) if event.links[i].memory == memory]
    return held[0] if held else None
