"""Judges two different programs by the tensors that both name."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from samebits.comparison.programs._distance import likeness, measure
from samebits.comparison.programs._pairing import first_out_of_order, match_others
from samebits.comparison.programs._series import read, without_prefixes
from samebits.comparison.programs.outcome import (
    Calls,
    Matched,
    Name,
    Place,
    ProgramComparison,
    Relation,
    Row,
    Tolerance,
    Why,
)
from samebits.comparison.reasons import Reason, ReasonCode
from samebits.comparison.record_values import RecordValues
from samebits.comparison.verdict import failure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from samebits.comparison.programs._series import Named, Series
    from samebits.comparison.record_values import RecordWithValues
    from samebits.comparison.results import Verdict
    from samebits.recording.kept_values import Kept
    from samebits.records.events import RunInfo

_TENFOLD = 10.0
_FINISHED = "finished"


class _Pair(NamedTuple):
    """A tensor that both programs name."""

    first: Name
    second: Name
    a: Series
    b: Series

    @property
    def calls(self) -> int:
        """The number of tensors that both have."""
        return min(len(self.a), len(self.b))

    def unequal(self) -> list[tuple[int, int]]:
        """Return the calls in both whose digests differ, or that could not be read in one of them.

        Of several threads, the order does not count.
        """
        calls = self.calls
        if not self.a.unread and self.a.contents(calls) == self.b.contents(calls):
            return []
        if len(self.a.threads | self.b.threads) > 1:
            return _unordered(self.a, self.b)
        return [(i, i) for i in range(calls) if self.a.digest(i) != self.b.digest(i) or not self.a.is_read(i)]


def _unordered(a: Series, b: Series) -> list[tuple[int, int]]:
    rest = []
    for ours, theirs in ((a, b), (b, a)):
        known = Counter(theirs.digest(i) for i in range(len(theirs)))
        lone = []
        for call in range(len(ours)):
            digest = ours.digest(call)
            if known[digest] > 0 and ours.is_read(call):
                known[digest] -= 1
            else:
                lone.append(call)
        rest.append(lone)
    return list(zip(*rest, strict=False))


@dataclass(frozen=True)
class _Judged:
    """One name: what differs, what differs within the tolerance, what has another form, what is unknown.

    Args:
        parted: the first tensor that differs.
        accepted: the one within the tolerance that is furthest apart.
        same_values: the first of which only dtype or shape differ.
        unreadable: how many could not be read.
        sampled: whether one was accepted, or called the same values, by a part of its elements.
    """

    parted: Row | None = None
    accepted: Row | None = None
    same_values: Row | None = None
    unreadable: int = 0
    sampled: bool = False


class _Judge:
    """Compares the tensors of one name after another.

    Args:
        a: values of the first record.
        b: of the second.
        tolerance: what is accepted; None for nothing.
    """

    def __init__(self, a: RecordValues, b: RecordValues, tolerance: Tolerance | None) -> None:
        self._a, self._b = a, b
        self._tolerance = tolerance

    def judge(self, pair: _Pair) -> _Judged:
        """Compare the tensors of a name until one differs for good."""
        unequal, unreadable, sampled = pair.unequal(), 0, False
        accepted: Row | None = None
        same_values: Row | None = None
        for number, (i, j) in enumerate(unequal):
            if not (pair.a.is_read(i) and pair.b.is_read(j)):
                unreadable += 1
                continue
            row = self._row(pair, (i, j), len(unequal))
            if row.distance.relation is Relation.SAME_VALUES:
                same_values, sampled = same_values or row, sampled or row.distance.is_sample
            elif self._tolerance is not None and self._tolerance.accepts(row.distance):
                accepted = row if accepted is None or self._is_further(row, accepted) else accepted
                sampled = sampled or row.distance.is_sample
            else:
                last = self._row(pair, unequal[-1], 1).distance if number + 1 < len(unequal) else None
                return _Judged(replace(row, last=last), accepted, same_values, unreadable, sampled)
        return _Judged(None, accepted, same_values, unreadable, sampled)

    def _is_further(self, row: Row, other: Row) -> bool:
        """Tell which of two rows is further apart, in the measure of the tolerance."""
        if self._tolerance is not None and self._tolerance.ulp is None:
            return (row.distance.relative or 0.0) > (other.distance.relative or 0.0)
        return (row.distance.max_ulp or 0) > (other.distance.max_ulp or 0)

    def _row(self, pair: _Pair, calls: tuple[int, int], differing: int) -> Row:
        first = pair.a.place(pair.first, calls[0], self._a.record)
        second = pair.b.place(pair.second, calls[1], self._b.record)
        ours = _kept(self._a, first, pair.a.digest(calls[0]))
        theirs = _kept(self._b, second, pair.b.digest(calls[1]))
        distance = measure((first.info, second.info), ours, theirs)
        return Row(first, second, distance, pair.calls, differing)


def judge_programs(
    a: RecordWithValues, b: RecordWithValues, *, by_shape: bool = False, tolerance: Tolerance | None = None
) -> ProgramComparison:
    """Compare the tensors of two programs that have the same name: taps, outputs of modules, and the state.

    Args:
        a: the first record.
        b: the second.
        by_shape: match the others by their contents, and by their shapes in order.
        tolerance: the difference that is accepted; None for none.

    Returns:
        `different` if a tensor differs beyond the tolerance, or if a run that came to its end has fewer
        tensors of a name than the other; `not_judged` if nothing differs and a run did not end well, or if
        there is nothing to compare.
    """
    values = RecordValues(a), RecordValues(b)
    notes, endings = (a.info.notes, b.info.notes), _endings(a.info, b.info)
    pairing = _paired(values, by_shape=by_shape)
    if pairing is None:
        return ProgramComparison("not_judged", Why.NOTHING_NAMED, tolerance, endings=endings, notes=notes)
    (only_first, only_second), pairs = pairing.only, pairing.pairs
    if not pairs:
        why = Why.NOTHING_MATCHES if by_shape else Why.NO_COMMON_NAME
        return ProgramComparison(
            "not_judged", why, tolerance, only_first=only_first, only_second=only_second, endings=endings,
            notes=notes,
        )  # fmt: skip
    judge = _Judge(*values, tolerance)
    judged = [judge.judge(pair) for pair in pairs]
    rows = tuple(sorted((each.parted for each in judged if each.parted), key=_when))
    open_ended = a.info.status != _FINISHED, b.info.status != _FINISHED
    unreadable = sum(each.unreadable for each in judged)
    other_calls = tuple(
        Calls(pair.first, len(pair.a), len(pair.b)) for pair in pairs if len(pair.a) != len(pair.b)
    )
    verdict, reason = _verdict(rows, other_calls, open_ended, unreadable)
    if reason in (None, Why.UNREADABLE) and not _ended_alike(a.info, b.info):
        verdict, reason = "not_judged", Why.NOT_WHOLE
    return ProgramComparison(
        verdict, reason, tolerance, names=len(pairs), tensors=sum(pair.calls for pair in pairs),
        before=_before(pairs, rows), rows=rows,
        accepted=tuple(each.accepted for each in judged if each.accepted),
        same_values=tuple(each.same_values for each in judged if each.same_values),
        sampled=tuple(pair.first for pair, each in zip(pairs, judged, strict=True) if each.sampled),
        only_first=only_first, only_second=only_second, other_calls=other_calls, order=pairing.order,
        matched=pairing.matched, prefixes=pairing.prefixes, unreadable=unreadable, open_ended=open_ended,
        endings=endings, notes=notes, jump=_jump(rows),
    )  # fmt: skip


@dataclass(frozen=True)
class _Pairing:
    """The tensors of two records that belong together, in the order of the first, and what is left."""

    pairs: tuple[_Pair, ...]
    only: tuple[tuple[Name, ...], tuple[Name, ...]]
    order: tuple[Name, Name] | None
    matched: tuple[Matched, ...]
    prefixes: tuple[str, str]


def _paired(values: tuple[RecordValues, RecordValues], *, by_shape: bool) -> _Pairing | None:
    """Find which names of two records belong together; None if a record has none."""
    first, second = values
    ours, theirs = read(first.record, first.note), read(second.record, second.note)
    if not ours or not theirs:
        return None
    ours, theirs, prefixes = without_prefixes(ours, theirs)
    pairs = [_Pair(name, name, series, theirs[name]) for name, series in ours.items() if name in theirs]
    rest = [{n: s for n, s in x.items() if n not in y} for x, y in ((ours, theirs), (theirs, ours))]
    matched: tuple[Matched, ...] = ()
    if by_shape:
        records = first.record, second.record
        matched = match_others(
            rest[0], rest[1], records, lambda x, y: _like(values, (x, ours[x]), (y, theirs[y]))
        )
    pairs += [_Pair(each.first, each.second, ours[each.first], theirs[each.second]) for each in matched]
    order = first_out_of_order(ours, theirs)
    return _Pairing(tuple(pairs), _unmatched(rest, matched), order, matched, prefixes)


def _like(values: tuple[RecordValues, RecordValues], a: tuple[Name, Series], b: tuple[Name, Series]) -> float:
    """Return how like the first tensors of two names are."""
    places = [series.place(name, 0, side.record) for side, (name, series) in zip(values, (a, b), strict=True)]
    kept = [
        _kept(side, place, series.digest(0))
        for side, place, (_, series) in zip(values, places, (a, b), strict=True)
    ]
    return likeness((places[0].info.shape, places[1].info.shape), kept[0], kept[1])


def _kept(values: RecordValues, place: Place, digest: bytes) -> Kept | None:
    return values.of((place.seq, place.position), digest, place.info)


def _unmatched(
    rest: Sequence[Named], matched: Sequence[Matched]
) -> tuple[tuple[Name, ...], tuple[Name, ...]]:
    taken = {each.first for each in matched}, {each.second for each in matched}
    first, second = (
        tuple([name for name in named if name not in used]) for named, used in zip(rest, taken, strict=True)
    )
    return first, second


def _when(row: Row) -> tuple[int, int]:
    return row.first.seq, row.first.position


def _before(pairs: Sequence[_Pair], rows: Sequence[Row]) -> int:
    """Count the names that have a tensor before the first that differs."""
    if not rows:
        return 0
    return sum((pair.a.seqs[0], pair.a.positions[0]) < _when(rows[0]) for pair in pairs)


def _verdict(
    rows: Sequence[Row], other_calls: Sequence[Calls], open_ended: tuple[bool, bool], unreadable: int
) -> tuple[Verdict, Why | None]:
    if rows:
        return "different", Why.DIFFERS
    if any(not open_ended[0 if calls.first < calls.second else 1] for calls in other_calls):
        return "different", Why.OTHER_CALLS
    return ("not_judged", Why.UNREADABLE) if unreadable else ("identical", None)


def _endings(a: RunInfo, b: RunInfo) -> tuple[Reason, ...]:
    """Say of each run that did not end with status 0 how it ended."""
    return tuple(each for each in (_ending("first", a), _ending("second", b)) if each)


def _ending(which: str, info: RunInfo) -> Reason | None:
    exited = Reason.of(ReasonCode.RUN_EXITED, which, info.exit_status) if info.exit_status else None
    return failure(which, info) or exited


def _ended_alike(a: RunInfo, b: RunInfo) -> bool:
    """Tell whether two programs came to their end, and with one status if both are known."""
    failed = failure("first", a) or failure("second", b)
    return not failed and len({a.exit_status, b.exit_status} - {None}) < 2


def _jump(rows: Sequence[Row]) -> int | None:
    """Return where the relative difference grows most from one name to the next, if it grows tenfold."""
    measured = [(at, row.distance.relative) for at, row in enumerate(rows) if row.distance.relative]
    growth = [(after / before, at) for (_, before), (at, after) in pairwise(measured) if before and after]
    largest = max(growth, default=(0.0, 0))
    return largest[1] if largest[0] >= _TENFOLD else None
