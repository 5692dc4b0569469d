"""The functions of other packages that a verification uses, and the records of child processes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from samebits.comparison.draw_pairs import draws_before
from samebits.comparison.lookup import Record
from samebits.comparison.origin import find_origins
from samebits.comparison.reasons import Reason, ReasonCode
from samebits.comparison.results import Comparison
from samebits.comparison.verdict import judge
from samebits.errors import SamebitsError
from samebits.recording.children import SUFFIX, children_folder
from samebits.recording.farewell import read_info
from samebits.records.kinds import EventKind
from samebits.records.notes import Note, NoteCode
from samebits.records.reader import RecordReader
from samebits.verification.runs import run_jobs

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from samebits.causes import Cause
    from samebits.comparison.results import OriginSearch, Source
    from samebits.records.events import Event, RunInfo
    from samebits.verification.results import ScriptRun
    from samebits.verification.series import RunJobs


class OpenRecord(Record, Protocol):
    """**Protocol:** an open record with the captured tensors, such as a `RecordReader`."""

    def captures(self, seq: int) -> dict[int, bytes]:
        """Return the contents of the tensors of an event, by position."""
        ...

    def captured(self) -> dict[int, frozenset[int]]:
        """Return the positions of the captured tensors, by event."""
        ...


class Judge(Protocol):
    """**Protocol:** `samebits.comparison.judge`."""

    def __call__(self, a: Record, b: Record, excluded: Collection[str] = ()) -> Comparison:
        """Return the verdict over two records."""
        ...


class FindOrigins(Protocol):
    """**Protocol:** `samebits.comparison.find_origins`."""

    def __call__(
        self,
        a: Record,
        b: Record,
        excluded: Collection[str] = (),
        explained: Collection[tuple[Cause, str, int]] = (),
        until: float | None = None,
    ) -> OriginSearch:
        """Return where differences came in."""
        ...


class DrawsBefore(Protocol):
    """**Protocol:** `samebits.comparison.draw_pairs.draws_before`."""

    def __call__(self, a: Record, b: Record, excluded: Collection[str] = ()) -> tuple[Source, ...]:
        """Return the sources that gave other values before the runs diverged."""
        ...


@dataclass(frozen=True)
class Tools:
    """The functions by which runs are made and compared.

    Args:
        run_jobs: runs the script.
        open_record: opens a record for reading.
        judge: the verdict over two records.
        find_origins: where differences came in, from two op-level records.
        draws_before: which draws differ before the runs diverge, from records of any level.
    """

    run_jobs: RunJobs = run_jobs
    open_record: Callable[[str], AbstractContextManager[OpenRecord]] = RecordReader
    judge: Judge = judge
    find_origins: FindOrigins = find_origins
    draws_before: DrawsBefore = draws_before


class Counted:
    """A record that counts the tensors that one walk over all of its steps reads.

    Args:
        record: the record.
    """

    def __init__(self, record: OpenRecord) -> None:
        self._record = record
        self.n_values = 0
        self.kinds: set[EventKind] = set()

    @property
    def info(self) -> RunInfo:
        """As the record's."""
        return self._record.info

    def events(
        self, kinds: Sequence[EventKind] = (), first_step: int | None = None, last_step: int | None = None
    ) -> Iterator[Event]:
        """As the record's."""
        n_values = 0
        for event in self._record.events(kinds, first_step, last_step):
            n_values += len(event.digests)
            self.kinds.add(event.kind)
            yield event
        if EventKind.OP not in kinds:
            self.n_values = max(self.n_values, n_values)

    def event(self, seq: int) -> Event:
        """As the record's."""
        return self._record.event(seq)


_POOL = "pool-"


def children_of(record: str, tools: Tools) -> dict[str, Path]:
    """Return the records of the children that trained, and of their children, by name."""
    records: dict[str, Path] = {}
    for path in sorted(children_folder(record).glob(f"*{SUFFIX}")):
        name = path.name.removesuffix(SUFFIX)
        if _trains(path, tools):
            records[name] = path
        records |= {f"{name}/{inner}": record for inner, record in children_of(str(path), tools).items()}
    return records


def with_children(
    comparison: Comparison, records: tuple[str, str], tools: Tools, excluded: Collection[str] = ()
) -> Comparison:
    """Return the verdict over two runs and their children.

    If the state of the two starting processes is the same, the state of each child is compared, even if
    values that these processes only report differ.

    Args:
        comparison: of the two processes that started them.
        records: of these processes.
        tools: compare them.
        excluded: names of state tensors that are left out.
    """
    first, second = (children_of(record, tools) for record in records)
    if comparison.state != "identical" or not (first or second):
        return comparison
    names = sorted({*first, *second})
    pools = [name for name in names if _POOL in name]
    judged = {name: _judged(name, (first.get(name), second.get(name)), tools, excluded) for name in names}
    if len(pools) > 1:
        judged |= {name: _by_chance(name, judged[name]) for name in pools}
    apart = {
        name: result
        for name, result in judged.items()
        if result.verdict == "different" and result.state != "identical"
    }
    if apart:  # the first is explained; in others the same line may differ, or another one
        name, result = next(iter(apart.items()))
        notes = (*result.notes, *_also(apart, name))
        reason = Reason.of(ReasonCode.IN_CHILD, name, result.reason)
        return replace(result, reason=reason, child=name, notes=notes)
    for result in judged.values():
        if result.verdict == "not_judged":
            return _doubted(comparison, result.reason)
    return _joined(comparison, judged)


def _also(apart: dict[str, Comparison], shown: str) -> list[Note]:
    """Note the other children whose state differs."""
    others = [(name, result.first_step) for name, result in apart.items() if name != shown]
    return [Note.of(NoteCode.CHILDREN_DIFFER_TOO, *others)] if others else []


def _judged(
    name: str, paths: tuple[Path | None, Path | None], tools: Tools, excluded: Collection[str]
) -> Comparison:
    """Return the verdict over one child, by its records in the two runs."""
    first, second = paths
    if first is None or second is None:
        which = "first" if first is None else "second"
        reason = Reason.of(ReasonCode.CHILD_WITHOUT_RECORD, name, which)
        return Comparison("not_judged", reason, 0)
    with tools.open_record(str(first)) as a, tools.open_record(str(second)) as b:
        comparison = tools.judge(a, b, excluded=excluded)
    if comparison.verdict == "not_judged":
        return replace(comparison, reason=Reason.of(ReasonCode.IN_CHILD, name, comparison.reason))
    return comparison


def _by_chance(name: str, comparison: Comparison) -> Comparison:
    """Withdraw the verdict on one of several pool processes that trained: chance gives each its tasks."""
    if comparison.verdict != "different":
        return comparison
    return Comparison("not_judged", Reason.of(ReasonCode.POOL_BY_CHANCE, name), comparison.steps)


def _doubted(comparison: Comparison, reason: Reason | None) -> Comparison:
    """Return a verdict whose state a child leaves open."""
    if comparison.verdict == "identical":
        return replace(comparison, verdict="not_judged", state="not_judged", reason=reason)
    both = Reason.of(ReasonCode.REPORTED_AND_DOUBT, len(comparison.reported), reason)
    return replace(comparison, state="not_judged", reason=both)


def _joined(comparison: Comparison, judged: dict[str, Comparison]) -> Comparison:
    """Join a verdict with those of children whose state is the same in both runs."""
    steps = comparison.steps + sum(result.steps for result in judged.values())
    notes = (Note.of(NoteCode.CHILD_COMPARED, name, result.steps) for name, result in judged.items())
    differing = {name: result for name, result in judged.items() if result.verdict == "different"}
    reported = comparison.reported + tuple(each for result in differing.values() for each in result.reported)
    whole = replace(comparison, steps=steps, notes=(*comparison.notes, *notes), reported=reported)
    if not differing:
        return whole
    reason = Reason.of(ReasonCode.ONLY_REPORTED, len(reported), True)
    if comparison.verdict == "different":
        return replace(whole, reason=reason)
    name, result = next(iter(differing.items()))
    whole = replace(result, steps=steps, notes=(*whole.notes, *result.notes), reported=reported)
    return replace(whole, reason=Reason.of(ReasonCode.IN_CHILD, name, reason), child=name)


def focused(run: ScriptRun, child: str) -> ScriptRun:
    """Return the run with the record of one of its children instead of its own."""
    record = run.record
    for name in child.split("/"):
        record = str(children_folder(record) / f"{name}{SUFFIX}")
    return replace(run, record=record, info=read_info(children_folder(record).with_suffix(SUFFIX)))


def _trains(path: Path, tools: Tools) -> bool:
    try:
        with tools.open_record(str(path)) as record:
            return next(record.events((EventKind.STEP, EventKind.GRAD)), None) is not None
    except SamebitsError:
        return False
