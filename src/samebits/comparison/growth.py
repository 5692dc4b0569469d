"""How far two runs are apart step by step, where both records keep the values of the state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from samebits._text.str_enum import StrEnum
from samebits.comparison._survey import paired_steps
from samebits.comparison.record_values import RecordValues
from samebits.comparison.states import EventTensor, compare_states
from samebits.comparison.step_chart import ModulePaths
from samebits.comparison.steps import compare_tables
from samebits.recording.distance import element_difference
from samebits.records.events import several_threads
from samebits.records.kinds import EventKind, Role

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from samebits.comparison.record_values import RecordWithValues
    from samebits.comparison.steps import Step

MOST_STEPS = 200
"""Steps that are measured; of more, every second or third is, and so on."""
MOST_TENSORS = 40_000
"""Pairs of tensors that are measured."""
_KINDS = (EventKind.LOSS, EventKind.GRAD, EventKind.STEP)


class GrowthKind(StrEnum):
    """What is measured apart, as losses, gradients and weights grow apart at their own pace."""

    WEIGHTS = "weights"
    """Parameters and buffers."""
    GRADIENTS = "gradients"
    OPTIMIZER = "optimizer"
    LOSSES = "losses"


_ROLES = {
    Role.PARAM: GrowthKind.WEIGHTS,
    Role.BUFFER: GrowthKind.WEIGHTS,
    Role.GRAD: GrowthKind.GRADIENTS,
    Role.OPTIMIZER: GrowthKind.OPTIMIZER,
}


@dataclass(frozen=True)
class GrowthPoint:
    """The largest distance in one step.

    Args:
        kind: of what.
        step: its number.
        ulp: the distance in units in the last place.
    """

    kind: GrowthKind
    step: int
    ulp: int


@dataclass(frozen=True)
class GrowthRow:
    """One module.

    Args:
        name: its path; empty for the root module.
        first: the first step in which it has a distance.
        first_ulp: the largest distance there.
        most: the step with the largest distance.
        most_ulp: that distance.
    """

    name: str
    first: int
    first_ulp: int
    most: int
    most_ulp: int


@dataclass(frozen=True)
class Growth:
    """The distance of two runs over their steps.

    Args:
        points: by kind and step.
        rows: by module, in the order in which they part.
        stride: every how many steps were measured, beside the first that differs.
        measured: how many pairs of tensors have a distance.
        unkept: how many pairs differ where one of the records keeps no values.
        unmeasurable: how many have no distance in ULP: integers, and what is not finite.
        last: the last step that was looked at; None where all were.
    """

    points: tuple[GrowthPoint, ...]
    rows: tuple[GrowthRow, ...]
    stride: int
    measured: int
    unkept: int
    unmeasurable: int
    last: int | None = None


def growth(a: RecordWithValues, b: RecordWithValues, excluded: Collection[str] = ()) -> Growth | None:
    """Measure how far the state and the losses of two runs are apart, step by step.

    Args:
        a: the first record.
        b: the second.
        excluded: names of state tensors that are left out, as in the verdict.

    Returns:
        None where a record keeps no such values, or where steps cannot be paired.

    Raises:
        SamebitsError: `record-damaged`.
    """
    if not (a.captured() and b.captured()):
        return None
    values = RecordValues(a), RecordValues(b)
    for side in values:
        for event in side.record.events(_KINDS):
            side.note(event)
    if not all(side.noted for side in values):
        return None
    if any(several_threads(record.events((EventKind.STEP,))) for record in (a, b)):
        return None
    measuring = _Measuring(values)
    stride = max(1, -(-min(a.info.steps, b.info.steps) // MOST_STEPS))
    last = _measure_steps(measuring, stride, excluded)
    return measuring.result(stride, last)


def _measure_steps(measuring: _Measuring, stride: int, excluded: Collection[str]) -> int | None:
    """Measure the chosen steps; return the last one if there were too many tensors for the rest."""
    previous: tuple[Step, Step] | None = None
    a, b = (side.record for side in measuring.values)
    for pair in paired_steps(a, b):
        step = pair[0].last
        if step % stride == 0 or not measuring.seen:
            for kind, ours, theirs in _differing(pair, previous, excluded, (a, b)):
                measuring.add(step, kind, ours, theirs)
            if measuring.seen >= MOST_TENSORS:
                return step
        if pair[0].states and pair[1].states:
            previous = pair
    return None


def _differing(
    pair: tuple[Step, Step],
    previous: tuple[Step, Step] | None,
    excluded: Collection[str],
    records: tuple[RecordWithValues, RecordWithValues],
) -> Iterator[tuple[GrowthKind, EventTensor, EventTensor]]:
    """Yield the tensors of a step that both runs have, and whose digests differ."""
    a, b = pair
    if a.closed and b.closed:
        for each in compare_states(a, b, excluded, previous).pairs:
            if each.a is not None and each.b is not None and each.role in _ROLES:
                yield _ROLES[each.role], each.a, each.b
    for ours, theirs in compare_tables(a.evidence, b.evidence).differing:
        events = records[0].event(ours), records[1].event(theirs)
        if all(event.kind == EventKind.LOSS and len(event.digests) == 1 for event in events):
            yield GrowthKind.LOSSES, EventTensor(events[0], 0), EventTensor(events[1], 0)


class _Measuring:
    """Measures tensors one after the other, and keeps the largest distance of each kind, step and module."""

    def __init__(self, values: tuple[RecordValues, RecordValues]) -> None:
        self.values = values
        self.seen = 0
        self._largest: dict[tuple[GrowthKind, int], int] = {}
        self._rows: dict[str, GrowthRow] = {}
        self._paths = ModulePaths()
        self._measured = self._unkept = self._unmeasurable = 0

    def add(self, step: int, kind: GrowthKind, ours: EventTensor, theirs: EventTensor) -> None:
        """Measure a pair of tensors."""
        self.seen += 1
        first, second = (
            side.of((tensor.event.seq, tensor.position), tensor.digest, tensor.info)
            for side, tensor in zip(self.values, (ours, theirs), strict=True)
        )
        if first is None or second is None:
            self._unkept += 1
            return
        x, y = first.elements, second.elements
        found = element_difference(x, y) if (x.dtype, x.shape) == (y.dtype, y.shape) else None
        if found is not None and not found.elements:  # of a large tensor, those that differ are not kept
            self._unkept += 1
            return
        ulp = None if found is None else found.max_ulp
        if ulp is None:
            self._unmeasurable += 1
            return
        self._measured += 1
        self._largest[kind, step] = max(self._largest.get((kind, step), 0), ulp)
        if kind is not GrowthKind.LOSSES:
            self._add_row(self._paths.of(ours.event.tensors)[ours.position], step, ulp)

    def _add_row(self, name: str, step: int, ulp: int) -> None:
        row = self._rows.get(name, GrowthRow(name, step, 0, step, 0))
        first_ulp = max(row.first_ulp, ulp) if step == row.first else row.first_ulp
        most, most_ulp = (step, ulp) if ulp > row.most_ulp else (row.most, row.most_ulp)
        self._rows[name] = GrowthRow(name, row.first, first_ulp, most, most_ulp)

    def result(self, stride: int, last: int | None) -> Growth:
        """Return what was measured."""
        points = [GrowthPoint(kind, step, ulp) for (kind, step), ulp in self._largest.items()]
        return Growth(
            tuple(points), tuple(self._rows.values()), stride, self._measured, self._unkept,
            self._unmeasurable, last,
        )  # fmt: skip
