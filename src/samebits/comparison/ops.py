"""Facts about ops, by their names and links."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from samebits.records.events import NO_WRITER
from samebits.records.kinds import EventKind, Role

if TYPE_CHECKING:
    from collections.abc import Iterator

    from samebits.comparison.lookup import EventCache, Lookup
    from samebits.records.events import Event, TensorInfo

_ALLOCATING = ("empty", "new_empty", "_empty", "resize_", "_resize_output_")
_ATTACHING = ("set_", "from_file")
# Ops that write every element of their first argument and read none of it.
_OVERWRITING = frozenset(
    ("copy_", "fill_", "zero_", "normal_", "uniform_", "random_", "bernoulli_", "exponential_", "log_normal_",
     "cauchy_", "geometric_", "set_", "resize_as_", "_foreach_copy_", "_foreach_zero_", "eye_")
)  # fmt: skip
# Ops whose output holds the same values as their input, computed from nothing else.
_COPYING = frozenset(
    ("copy_", "clone", "_to_copy", "_foreach_copy_", "lift_fresh", "detach", "contiguous", "_unsafe_view",
     "_reshape_copy", "alias_copy", "view_copy")
)  # fmt: skip


def base_name(op: str) -> str:
    """Return `add_` for `aten::add_.Tensor`."""
    return op.rpartition("::")[2].partition(".")[0]


def allocates(event: Event) -> bool:
    """Tell whether an op returns memory with its former contents."""
    return event.kind == EventKind.OP and base_name(event.op).startswith(_ALLOCATING)


def attaches_memory(event: Event) -> bool:
    """Tell whether an op puts a tensor on memory filled elsewhere: by another process, from a file."""
    return event.kind == EventKind.OP and base_name(event.op) in _ATTACHING and not read_inputs(event)


def decisive_tensors(event: Event) -> list[int]:
    """Return the positions of what decides an op's result: the tensors it reads, and its generator."""
    return [*read_inputs(event), *positions(event, Role.RNG)]


def only_copies(event: Event) -> bool:
    """Tell whether an op only copies values."""
    return event.kind == EventKind.OP and base_name(event.op) in _COPYING


def positions(event: Event, role: Role) -> list[int]:
    """Return the positions of the tensors of an event that have a role."""
    return [i for i, info in enumerate(event.tensors) if info.role == role]


def input_digests(event: Event) -> list[bytes]:
    """Return the digests of the inputs of an op."""
    return [event.digests[i] for i in positions(event, Role.IN)]


def written(event: Event, memory: int) -> list[int]:
    """Return the positions of the tensors that an event left in a memory."""
    role = Role.OUT if event.kind == EventKind.OP else Role.VALUE
    return [i for i in positions(event, role) if i < len(event.links) and event.links[i].memory == memory]


def read_inputs(event: Event) -> list[int]:
    """Return the positions of the inputs that can influence an op's outputs: those it does not overwrite."""
    inputs = positions(event, Role.IN)
    name, overload = base_name(event.op), event.op.rpartition(".")[2]
    if overload.endswith("out") or overload.startswith("out_"):
        n_out = len(positions(event, Role.OUT))
        return inputs[:-n_out] if n_out else inputs
    if name in _OVERWRITING and inputs:
        targets = {event.links[i].memory for i in positions(event, Role.OUT)} if event.links else set()
        if name.startswith("_foreach"):
            return [i for i in inputs if event.links and event.links[i].memory not in targets]
        return inputs[1:]
    return inputs


def differing_inputs(a: Event, b: Event) -> list[tuple[int, int]]:
    """Return the positions of the inputs that can matter and differ between the same op of two runs."""
    pairs = zip(read_inputs(a), read_inputs(b), strict=False)
    return [(i, j) for i, j in pairs if a.digests[i] != b.digests[j]]


def previous_writer(event: Event, memory: int) -> int:
    """Return the event that wrote a memory before an event wrote it."""
    outputs = written(event, memory)
    return event.links[outputs[0]].writer if outputs else NO_WRITER


def n_bytes(info: TensorInfo) -> int:
    """Return the size of a tensor; elements of unknown types count as 8 bytes."""
    bits = "".join(char for char in info.dtype.partition("_")[0] if char.isdigit())
    size = int(bits) // 8 if bits else (1 if info.dtype == "bool" else 8)
    for length in info.shape:
        size *= length
    return size


_MOST_WRITES = 512
_NEARBY = 48  # events to each side


def reordered(lookup: Lookup, a: Event, b: Event) -> set[str] | None:
    """Tell whether two in-place writes end the same writes in another order.

    Both chains of writes are followed back together. Once both have contributed the same values, in another
    order, they are a reordering; where the memory held the same before, the search ends.

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
    """Tell whether an op reads what the same line of code made before, as `total = total + x` does."""
    made = [cache.get(event.links[i].writer) for i in read_inputs(event) if i < len(event.links)]
    return any(other is not None and (other.op, other.site) == (event.op, event.site) for other in made)


def nearby_threads(cache: EventCache, event: Event) -> set[str]:
    """Return the other threads that wrote what an op wrote in place, or soon after it what it read."""
    memories = {link.memory for link in event.links}
    accumulated = _accumulated(event)
    threads = set()
    for seq in range(event.seq - _NEARBY, event.seq + _NEARBY + 1):
        other = cache.get(seq) if seq >= 0 else None
        if other is None or other.thread == event.thread or other.kind != EventKind.OP:
            continue
        left = {other.links[i].memory for i in positions(other, Role.OUT) if i < len(other.links)}
        if accumulated in left or (seq > event.seq and left & memories):
            threads.add(other.thread)
    return threads


def _accumulated(event: Event) -> int | None:
    """Return the memory that an op reads and writes in place; None when it does not."""
    if event.kind != EventKind.OP or not event.links:
        return None
    read = {event.links[i].memory for i in read_inputs(event)}
    return next(
        (event.links[i].memory for i in positions(event, Role.OUT) if event.links[i].memory in read), None
    )


class _Write(NamedTuple):
    contribution: object
    before: bytes | None
    thread: str


def _chain(cache: EventCache, event: Event, memory: int | None) -> Iterator[_Write]:
    """Yield each write to a memory, the last first: its contribution, and the contents before."""
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
    """Return what a write added: the other operand of an addition; itself, if it reads nothing there."""
    reads = read_inputs(event)
    if all(event.links[i].memory != memory for i in reads):
        return event.digests[written(event, memory)[0]]
    others = tuple(event.digests[i] for i in reads if event.links[i].memory != memory)
    plain = base_name(event.op) in ("add_", "_foreach_add_") and len(others) == 1
    return others[0] if plain else (base_name(event.op), others, event.arguments)


def _before(event: Event, memory: int) -> bytes | None:
    """Return the contents of a memory before a write that used them; None for one that did not."""
    held = [event.digests[i] for i in read_inputs(event) if event.links[i].memory == memory]
    return held[0] if held else None
