"""Makes findings: one function for each kind of origin."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from samebits.causes import Cause, OriginKind
from samebits.comparison.evidence import Evidence, EvidenceCode, call_of
from samebits.comparison.ops import input_digests, nearby_threads, positions, read_inputs
from samebits.comparison.results import Diagnosis, Finding, Origin, describe, descriptions, values_of
from samebits.records.kinds import EventKind, Role

if TYPE_CHECKING:
    from samebits.comparison._data_flow import Point
    from samebits.comparison._generator_states import Blame
    from samebits.comparison.lookup import Lookup
    from samebits.records.events import Event

_SHOWN = 200  # characters of an op's arguments


def finding(
    a: Event | None,
    b: Event | None,
    origin_kind: OriginKind,
    *,
    evidence: tuple[Evidence, ...],
    cause: Cause = Cause.UNKNOWN,
    inputs_equal: bool | None = None,
) -> Finding:
    """Make a finding about an event of each run, or of one."""
    event, other = (b, None) if a is None else (a, b)
    if event is None:
        raise ValueError("a finding needs an event")
    differing = () if a is None or b is None else _differing(a, b)
    origin = replace(
        Origin.at(event), inputs_equal=inputs_equal, origin_kind=origin_kind,
        names=tuple(event.tensors[i].name for i in differing if event.tensors[i].name),
        inputs=descriptions(event, Role.IN, Role.RNG), outputs=values_of(event),
        events=(a.seq if a else None, b.seq if b else None), positions=differing,
        other_site=other.site if other and other.site != event.site else None,
        other_op=other.op if other and other.op != event.op else None, of_second=a is None,
    )  # fmt: skip
    return Finding(origin, Diagnosis(cause, evidence))


def kernel(lookup: Lookup, a: Event, b: Event) -> Finding:
    """Blame an op: the same inputs, arguments and generator state gave other outputs."""
    equal = True if read_inputs(a) else None
    threads = nearby_threads(lookup.a, a) | nearby_threads(lookup.b, b)
    if threads:
        line = Evidence.of(EvidenceCode.THREADS_WROTE, *sorted(threads))
        return finding(a, b, OriginKind.ORDER, cause=Cause.RACE, inputs_equal=equal, evidence=(line,))
    line = Evidence.of(EvidenceCode.OUTPUT_DIFFERED)
    return finding(
        a, b, OriginKind.KERNEL, cause=Cause.NONDETERMINISTIC_KERNEL, inputs_equal=equal, evidence=(line,)
    )


def argument(a: Event, b: Event, *, inputs_equal: bool) -> Finding:
    """Blame an argument: an op was given a Python value that differs."""
    if a.arguments == b.arguments:
        numbers = [len(positions(event, Role.IN)) for event in (a, b)]
        line = Evidence.of(EvidenceCode.OTHER_NUMBER_OF_TENSORS, *numbers)
    else:
        line = Evidence.of(EvidenceCode.OTHER_ARGUMENTS, _cut(a.arguments), _cut(b.arguments))
    return finding(
        a, b, OriginKind.ARGUMENT, inputs_equal=inputs_equal, evidence=(line, *_other_threads(a, b))
    )


def outside(a: Event, b: Event, point: Point, *, more: tuple[Evidence, ...] = ()) -> Finding:
    """Blame the outside: a value entered that no recorded op made."""
    info = a.tensors[point.position_a]
    part = "output" if info.role == Role.OUT else f"input {point.position_a}"
    line = Evidence.of(EvidenceCode.FROM_OUTSIDE, info.name or part, describe(info))
    equal = False if info.role == Role.IN else None
    result = finding(a, b, OriginKind.OUTSIDE, inputs_equal=equal, evidence=(line, *more))
    if info.role != Role.IN:
        return result
    return replace(result, origin=replace(result.origin, entered=(point.position_a,)))


def batch(a: Event, b: Event) -> Finding:
    """Blame the loader: it gave another batch."""
    return finding(a, b, OriginKind.BATCH, evidence=(Evidence.of(EvidenceCode.OTHER_BATCH, a.site),))


def uninitialized(a: Event, b: Event, reader: Event) -> Finding:
    """Blame uninitialized memory: it was read as it was allocated."""
    line = Evidence.of(EvidenceCode.MEMORY_AS_IT_WAS, a.op, call_of(reader))
    return finding(a, b, OriginKind.UNINITIALIZED, cause=Cause.UNINITIALIZED, evidence=(line,))


def draw(blame: Blame) -> Finding:
    """Blame a generator: it was in another state."""
    is_op = blame.a.kind == EventKind.OP and bool(read_inputs(blame.a))
    same = input_digests(blame.a) == input_digests(blame.b)
    return finding(
        blame.a, blame.b, blame.origin_kind, cause=blame.cause, evidence=blame.evidence,
        inputs_equal=same if is_op else None,
    )  # fmt: skip


def order(a: Event, b: Event, threads: set[str], reader: Event | None = None) -> Finding:
    """Blame the order of operations: a race when several threads took part."""
    several = len(threads) > 1
    lines = [Evidence.of(EvidenceCode.OTHER_ORDER, a.op, a.site, not several)]
    if several:
        lines.append(Evidence.of(EvidenceCode.THREADS_TOOK_PART, *sorted(threads)))
    if reader is not None:
        lines.append(Evidence.of(EvidenceCode.READ_BY, call_of(reader)))
    cause = Cause.RACE if several else Cause.UNKNOWN
    return finding(a, b, OriginKind.ORDER, cause=cause, evidence=tuple(lines))


def selection(a: Event, b: Event, writers: tuple[Event | None, Event | None], threads: set[str]) -> Finding:
    """Blame a choice: the same op took a tensor that different operations had made."""
    makers = (call_of(writer) if writer else None for writer in writers)
    lines = [Evidence.of(EvidenceCode.OTHER_MAKERS, *makers)]
    if len(threads) > 1:
        lines.append(Evidence.of(EvidenceCode.THREADS_TOOK_PART, *sorted(threads)))
    cause = Cause.RACE if len(threads) > 1 else Cause.UNKNOWN
    return finding(a, b, OriginKind.ORDER, cause=cause, inputs_equal=False, evidence=tuple(lines))


def other_output(a: Event, b: Event, maker: Event) -> Finding:
    """Blame a choice: the same op took another tensor of one event, such as another row of a table."""
    line = Evidence.of(EvidenceCode.OTHER_OUTPUT, call_of(maker))
    return finding(a, b, OriginKind.ORDER, inputs_equal=False, evidence=(line,))


def control_flow(a: Event | None, b: Event | None, *, of_second: bool) -> Finding:
    """Blame the control flow: one run did something that the other did not, at least there."""
    lines = [Evidence.of(EvidenceCode.RUNS_DIVERGED)]
    for which, event in (("first", a), ("second", b)):
        lines.append(Evidence.of(EvidenceCode.WENT_ON, which, None if event is None else call_of(event)))
    start, other = (b, a) if of_second else (a, b)
    result = finding(start, None, OriginKind.CONTROL_FLOW, evidence=tuple(lines))
    origin = replace(
        result.origin,
        events=(a.seq if a else None, b.seq if b else None),
        other_site=other.site if other and other.site != result.origin.site else None,
        other_op=other.op if other and other.op != result.origin.op else None,
        of_second=of_second,
    )
    return replace(result, origin=origin)


def lost(a: Event | None, b: Event | None, why: EvidenceCode) -> Finding:
    """Report that the search could not go on."""
    return finding(a, b, OriginKind.NONE, evidence=(Evidence.of(why),))


def _other_threads(a: Event, b: Event) -> tuple[Evidence, ...]:
    """Return the evidence that another thread came first."""
    if a.thread == b.thread:
        return ()
    return (Evidence.of(EvidenceCode.OTHER_THREAD, a.thread, b.thread),)


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def _differing(a: Event, b: Event) -> tuple[int, ...]:
    """Return the positions of the outputs of an op, or values of another event, that differ."""
    given = range(len(a.digests)) if a.kind != EventKind.OP else positions(a, Role.OUT)
    return tuple(i for i in given if i >= len(b.digests) or a.digests[i] != b.digests[i])
