"""Operation by operation: where the values of two runs part, and how far apart they are from there on."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from samebits._text.str_enum import StrEnum
from samebits.comparison._alignment import Keyer
from samebits.comparison._survey import last_steps
from samebits.comparison._threads import survey_runs
from samebits.comparison.changed_code import on_common_lines
from samebits.comparison.difference import captured_difference
from samebits.comparison.lookup import Lookup
from samebits.comparison.ops import allocates, differing_inputs, positions
from samebits.records.kinds import EventKind, Level, Role

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from samebits._runtime.frames import Site
    from samebits.recording.distance import Difference
    from samebits.records.events import Event
    from samebits.records.reader import RecordReader

MOST_OPS = 200_000
"""Operations that are shown."""
MOST_LEAD = MOST_OPS // 4
"""Operations that are shown before the first that differs."""
MOST_MEASURED = 3_000
"""Operations whose captured values are compared."""
_LEAD_STEPS = 2  # before the first step whose state differs: a value may differ before it reaches the state


class OpState(StrEnum):
    """How one operation compares between two runs."""

    SAME = "same"
    BEGINS = "begins"
    """Its inputs are the same and its outputs are not."""
    DIFFERS = "differs"
    """Its inputs differ, and its outputs."""
    ALONE = "alone"
    """No operation of the second run corresponds to it."""
    UNPAIRED = "unpaired"
    """Its step has too many events to find the one that corresponds, so nothing is known."""


@dataclass(frozen=True)
class OpPoint:
    """One operation of the first run.

    Args:
        number: its position among the operations that are shown, from 0.
        step: of it.
        op: its name.
        module: path of the module, empty outside modules.
        site: the line.
        is_backward: whether the backward pass made it.
        state: how it compares with the second run.
        difference: how far its outputs are apart, where both runs captured them and they differ.
    """

    number: int
    step: int
    op: str
    module: str
    site: Site | None
    is_backward: bool
    state: OpState
    difference: Difference | None = None


@dataclass(frozen=True)
class OpTimeline:
    """The operations from the step on in which two runs part.

    Args:
        points: in the order of the first run.
        first_step: of the first of them.
        last_step: of the last.
        measured: of how many operations that differ the captured values of both runs were compared.
        left_out: how many operations of these steps are not among the points: there may be too many.
        only_second: how many operations of the second run correspond to none of the first.
    """

    points: tuple[OpPoint, ...]
    first_step: int
    last_step: int
    measured: int
    left_out: int = 0
    only_second: int = 0


def op_timeline(
    a: RecordReader, b: RecordReader, excluded: Collection[str] = (), origins: Collection[int] = ()
) -> OpTimeline | None:
    """Compare two op-level records operation by operation, up to the first step whose state differs.

    Args:
        a: the first record.
        b: the second.
        excluded: names of state tensors that are left out of the verdict.
        origins: `seq` in the first run of the operations that are known to be origins.

    Returns:
        None where one holds no operations, or where no operation is known to differ and all are known.

    Raises:
        SamebitsError: `record-damaged`.
    """
    if Level.STEP in (a.info.level, b.info.level):
        return None
    first, second = on_common_lines(a, b)
    survey = survey_runs(first, second, excluded, to_first=True)
    last = last_steps(first, second, survey)
    lookup = Lookup(first, second, survey.first_span, last, Keyer(numbered=not survey.several_threads))
    measuring, chosen = _Measuring(a, b), _Chosen()
    for event in first.events((EventKind.OP,), max(0, last[0] - _LEAD_STEPS), last[0]):
        if not chosen.is_full:
            chosen.add(_point(event, lookup, measuring, origins))
        else:
            chosen.left_out += 1
    points = tuple(replace(point, number=number) for number, point in enumerate(chosen.points))
    if not points:
        return None
    start = points[0].step
    extra = _only_in_b(lookup, second.events((EventKind.OP,), lookup.step_in_b(start), last[1]))
    return OpTimeline(points, start, points[-1].step, measuring.measured, chosen.left_out, extra)


class _Chosen:
    """The operations that are shown: from the beginning of the first step in which one differs.

    Attributes:
        left_out: how many operations from there on are too many to be shown.
    """

    def __init__(self) -> None:
        self.left_out = 0
        self._shown: list[OpPoint] = []
        self._lead: deque[OpPoint] = deque()
        self._dropped = 0

    @property
    def points(self) -> list[OpPoint]:
        """All of them in order; empty as long as none differs."""
        return self._shown

    @property
    def is_full(self) -> bool:
        """True once there is no room for more."""
        return len(self._shown) >= MOST_OPS

    def add(self, point: OpPoint) -> None:
        """Take in the next operation."""
        if self._shown:
            self._shown.append(point)
            return
        if self._lead and self._lead[-1].step != point.step:
            self._lead.clear()
            self._dropped = 0
        self._lead.append(point)
        if point.state != OpState.SAME:
            self._shown, self.left_out = list(self._lead), self._dropped
        elif len(self._lead) > MOST_LEAD:
            self._lead.popleft()
            self._dropped += 1


def _only_in_b(lookup: Lookup, events: Iterator[Event]) -> int:
    """Count the operations of the second run to which none of the first corresponds."""
    return sum(
        lookup.alignment(lookup.step_in_a(event.step)) is not None and lookup.partner_in_a(event) is None
        for event in events
    )


def _point(event: Event, lookup: Lookup, measuring: _Measuring, origins: Collection[int]) -> OpPoint:
    seq = lookup.partner_in_b(event)
    partner = None if seq is None else lookup.b.get(seq)
    if lookup.alignment(event.step) is None:
        state = OpState.UNPAIRED
    else:
        state = OpState.ALONE if partner is None else _state(event, partner, origins)
    difference = None
    if partner is not None and state in (OpState.BEGINS, OpState.DIFFERS):
        difference = measuring.difference(event, partner)
    backward = event.forward_site is not None
    return OpPoint(0, event.step, event.op, event.module, event.site, backward, state, difference)


def _state(a: Event, b: Event, origins: Collection[int]) -> OpState:
    outputs = [[event.digests[i] for i in positions(event, Role.OUT)] for event in (a, b)]
    if outputs[0] == outputs[1]:
        return OpState.SAME
    if a.seq in origins:
        return OpState.BEGINS
    if allocates(a):  # memory with its former contents, which mean nothing unless they are an origin
        return OpState.SAME
    return OpState.DIFFERS if differing_inputs(a, b) else OpState.BEGINS


class _Measuring:
    """Compares the captured outputs of operations, as long as there are not too many.

    Args:
        a: the first record.
        b: the second.
    """

    def __init__(self, a: RecordReader, b: RecordReader) -> None:
        self._records = a, b
        self._captured = a.captured(), b.captured()
        self.measured = 0

    def difference(self, a: Event, b: Event) -> Difference | None:
        """Return how far the first output that differs is apart; None where its values are not known."""
        if self.measured >= MOST_MEASURED:
            return None
        wanted = set(positions(a, Role.OUT)) & self._captured[0].get(a.seq, frozenset())
        if not wanted & self._captured[1].get(b.seq, frozenset()):
            return None
        ours, theirs = (
            {at: data for at, data in record.captures(event.seq).items() if at in wanted}
            for record, event in zip(self._records, (a, b), strict=True)
        )
        difference = captured_difference(ours, theirs, complex_positions(a))
        if difference is None or not difference.elements:
            return None
        self.measured += 1
        return difference


def complex_positions(event: Event) -> set[int]:
    """Return the positions of complex tensors, which are captured as pairs."""
    return {at for at, info in enumerate(event.tensors) if info.dtype.startswith("complex")}
