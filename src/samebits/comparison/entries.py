"""Makes findings: one function for each way in which a difference comes in."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from samebits.causes import Cause, OriginKind
from samebits.comparison.ops import positions, read_inputs
from samebits.comparison.reorder import names as thread_names
from samebits.comparison.reorder import nearby_threads
from samebits.comparison.results import Diagnosis, Finding, Origin, describe, descriptions, place, values_of

if TYPE_CHECKING:
    from samebits.comparison.draws import Blame
    from samebits.comparison.lookup import Lookup
    from samebits.comparison.points import Point
    from samebits.recording.events import Event

_SHOWN = 200  # characters of an op's arguments


def finding(
    a: Event | None,
    b: Event | None,
    entry: OriginKind,
    *,
    evidence: tuple[str, ...],
    cause: Cause = Cause.UNKNOWN,
    inputs_equal: bool | None = None,
) -> Finding:
    """A finding about an event of each run, or of one."""
    event, other = (b, None) if a is None else (a, b)
    if event is None:
        raise ValueError("a finding needs an event")
    differing = () if a is None or b is None else _differing(a, b)
    origin = Origin(
        kind=event.kind, step=event.step, op=event.op, module=event.module or None, site=event.site,
        forward_site=event.forward_site, inputs_equal=inputs_equal, entry=entry,
        names=tuple(event.tensors[i].name for i in differing if event.tensors[i].name),
        inputs=descriptions(event, "in", "rng"), outputs=values_of(event),
        events=(a.seq if a else None, b.seq if b else None), positions=differing,
        other_site=other.site if other and other.site != event.site else None,
        other_op=other.op if other and other.op != event.op else None,
    )  # fmt: skip
    return Finding(origin, Diagnosis(cause, evidence))


def kernel(lookup: Lookup, a: Event, b: Event) -> Finding:
    """The same inputs, arguments and generator state gave other outputs."""
    equal = True if read_inputs(a) else None
    threads = nearby_threads(lookup.a, a) | nearby_threads(lookup.b, b)
    if threads:
        line = f"while it ran, other threads wrote the same memory: {thread_names(threads)}"
        return finding(a, b, OriginKind.ORDER, cause=Cause.RACE, inputs_equal=equal, evidence=(line,))
    line = "inputs, arguments and generator state were the same in both runs, the output was not"
    return finding(
        a, b, OriginKind.KERNEL, cause=Cause.NONDETERMINISTIC_KERNEL, inputs_equal=equal, evidence=(line,)
    )


def argument(a: Event, b: Event, *, inputs_equal: bool) -> Finding:
    """A Python value that differs was given to an op."""
    if a.arguments == b.arguments:
        numbers = [len(positions(event, "in")) for event in (a, b)]
        line = f"it got {numbers[0]} tensors in the first run, {numbers[1]} in the second"
    else:
        texts = _cut(a.arguments), _cut(b.arguments)
        line = f"its arguments were ({texts[0]}) in the first run and ({texts[1]}) in the second"
    return finding(
        a, b, OriginKind.ARGUMENT, inputs_equal=inputs_equal, evidence=(line, *_other_threads(a, b))
    )


def outside(a: Event, b: Event, point: Point, *, more: tuple[str, ...] = ()) -> Finding:
    """A value entered that no recorded op made."""
    info = a.tensors[point.position_a]
    part = "output" if info.role == "out" else f"input {point.position_a}"
    what = f"{info.name or part} ({describe(info)})"
    line = (
        f"{what} differs and no recorded operation wrote it: it came from Python, NumPy, a file or another"
        " process"
    )
    equal = False if info.role == "in" else None
    found = finding(a, b, OriginKind.OUTSIDE, inputs_equal=equal, evidence=(line, *more))
    if info.role != "in":
        return found
    return replace(found, origin=replace(found.origin, entered=(point.position_a,)))


def batch(a: Event, b: Event) -> Finding:
    """The loader gave another batch."""
    return finding(
        a, b, OriginKind.BATCH, evidence=(f"the loader at {place(a.site)} gave other contents in each run",)
    )


def uninitialized(a: Event, b: Event, reader: Event) -> Finding:
    """Memory was read as it was allocated."""
    line = f"{a.op} gives memory that holds whatever was in it before; it was read by {_who(reader)}"
    return finding(a, b, OriginKind.UNINITIALIZED, cause=Cause.UNINITIALIZED, evidence=(line,))


def draw(blame: Blame) -> Finding:
    """A generator was in another state."""
    is_op = blame.a.kind == "op" and bool(read_inputs(blame.a))
    same = _inputs(blame.a) == _inputs(blame.b)
    return finding(
        blame.a, blame.b, blame.entry, cause=blame.cause, evidence=blame.evidence,
        inputs_equal=same if is_op else None,
    )  # fmt: skip


def order(a: Event, b: Event, threads: set[str], reader: Event | None = None) -> Finding:
    """The same operations ran in another order: a race when several threads took part."""
    where = f"{a.op} at {place(a.site)}"
    if len(threads) > 1:
        lines = [
            f"the same operations ran in another order: {where}",
            f"threads that took part: {thread_names(threads)}",
        ]
    else:
        lines = [f"the same operations ran in another order in one thread: {where}"]
    if reader is not None:
        lines.append(f"the result was read by {_who(reader)}")
    cause = Cause.RACE if len(threads) > 1 else Cause.UNKNOWN
    return finding(a, b, OriginKind.ORDER, cause=cause, evidence=tuple(lines))


def selection(a: Event, b: Event, writers: tuple[Event | None, Event | None], threads: set[str]) -> Finding:
    """The same op took a tensor that came from different operations."""
    made = " and ".join(_who(writer) if writer else "no recorded operation" for writer in writers)
    lines = [f"it read a tensor that was made by different operations: {made}"]
    if len(threads) > 1:
        lines.append(f"threads that took part: {thread_names(threads)}")
    cause = Cause.RACE if len(threads) > 1 else Cause.UNKNOWN
    return finding(a, b, OriginKind.ORDER, cause=cause, inputs_equal=False, evidence=tuple(lines))


def other_output(a: Event, b: Event, maker: Event) -> Finding:
    """The same op took another of the tensors that one event gave, such as another row of a table."""
    line = f"it took another output of {_who(maker)} in each run"
    return finding(a, b, OriginKind.ORDER, inputs_equal=False, evidence=(line,))


def parting(a: Event | None, b: Event | None, *, of_second: bool) -> Finding:
    """The runs took different ways: one did something that the other did not, there at least."""
    lines = ["from here on the runs did different things"]
    for which, event in (("first", a), ("second", b)):
        went_on = f"went on with {_who(event)}" if event is not None else "did nothing more in this step"
        lines.append(f"the {which} run {went_on}")
    start, other = (b, a) if of_second else (a, b)
    found = finding(start, None, OriginKind.CONTROL_FLOW, evidence=tuple(lines))
    origin = found.origin
    origin = replace(
        origin,
        events=(a.seq if a else None, b.seq if b else None),
        other_site=other.site if other and other.site != origin.site else None,
        other_op=other.op if other and other.op != origin.op else None,
    )
    return replace(found, origin=origin)


def lost(a: Event | None, b: Event | None, why: str) -> Finding:
    """The search could not go on."""
    return finding(a, b, OriginKind.NONE, evidence=(why,))


def _other_threads(a: Event, b: Event) -> tuple[str, ...]:
    """What tells that another thread came first."""
    if a.thread == b.thread:
        return ()
    first, second = (thread_names({event.thread}) for event in (a, b))
    return (f"it ran in {first} in the first run, in {second} in the second",)


def _who(event: Event) -> str:
    module = f" in {event.module}" if event.module else ""
    return f"{event.op} at {place(event.site)}{module}"


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def _inputs(event: Event) -> list[bytes]:
    return [event.digests[i] for i in positions(event, "in")]


def _differing(a: Event, b: Event) -> tuple[int, ...]:
    """Which outputs of an op, or values of another event, differ."""
    kept = range(len(a.digests)) if a.kind != "op" else positions(a, "out")
    return tuple(i for i in kept if i >= len(b.digests) or a.digests[i] != b.digests[i])
