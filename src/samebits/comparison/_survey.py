"""Values of threads that make no steps: in which step such a thread gives one is chance.

A thread that reads samples ahead of the training loop reads values out while other steps run in each run.
That the values of one step differ shows nothing then; the runs differ where its values as a whole do.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING

from samebits.comparison._generator_states import GeneratorLog
from samebits.comparison.states import StateDifference, compare_states, final_state, held_states
from samebits.comparison.steps import Step, steps
from samebits.comparison.tables import Key, TableDifference, compare_tables, key_of
from samebits.records.events import several_threads
from samebits.records.kinds import EventKind

if TYPE_CHECKING:
    from collections.abc import Collection

    from samebits.comparison.lookup import Record

if TYPE_CHECKING:
    from samebits.comparison.lookup import Record
    from samebits.comparison.steps import Step
    from samebits.comparison.tables import Column, Key

    ByThread = dict[str, Counter[tuple[bytes, ...]]]

_KINDS = (EventKind.BATCH, EventKind.READ, EventKind.SAVE)


class ValuesBeside:
    """Tells which differences within a step are those of the moment only.

    Args:
        a: the first record.
        b: the second.
    """

    def __init__(self, a: Record, b: Record) -> None:
        self._records = a, b
        self._whole = a.info.status == b.info.status == "finished"
        self._known: dict[Key, bool] = {}

    def only_moved(self, key: Key, columns: tuple[Column, Column], steps: tuple[Step, Step]) -> bool:
        """Whether values of one site that differ in a step are the same over the whole of both runs.

        Args:
            key: of the site.
            columns: its values in that step of each run.
            steps: the step of each run.
        """
        stepping = (steps[0].threads | steps[1].threads) or {""}
        if key[0] not in _KINDS or columns[0].threads | columns[1].threads <= stepping:
            return False
        if key not in self._known:
            self._known[key] = self._same(key)
        return self._known[key]

    def _same(self, key: Key) -> bool:
        ours, theirs = (log.get(key, {}) for log in self._values)
        if self._whole:
            return _total(ours) == _total(theirs)
        # Runs that were ended early have left each thread where it was, in one run further than in the other.
        common = ours.keys() & theirs.keys()
        rest = (_total({name: log[name] for name in log.keys() - common}) for log in (ours, theirs))
        return _hold(*rest) and all(_hold(ours[name], theirs[name]) for name in common)

    @cached_property
    def _values(self) -> list[dict[Key, ByThread]]:
        found: list[dict[Key, ByThread]] = []
        for record in self._records:
            log: dict[Key, ByThread] = defaultdict(lambda: defaultdict(Counter))
            for event in record.events(_KINDS):
                log[key_of(event)][event.thread][event.digests] += 1
            found.append(log)
        return found


def _total(threads: ByThread) -> Counter[tuple[bytes, ...]]:
    return sum(threads.values(), start=Counter())


def _hold(a: Counter[tuple[bytes, ...]], b: Counter[tuple[bytes, ...]]) -> bool:
    """Whether all values of one are among those of the other."""
    return a <= b or b <= a


_FIRST = 20  # sites whose extra values are remembered
_MOST_REPORTED = 1000  # lines whose values differ


@dataclass(frozen=True)
class StepDifference:
    """How two runs differ in one step.

    Args:
        a: the step of the first run.
        b: the step of the second run.
        state: state at its boundary.
        outputs: reads and saves.
        evidence: batches and losses.
        number: of the step in the first run; by default that of `a`, or in a script that does not train the
            number of values that were read before the first that differs.
    """

    a: Step
    b: Step
    state: StateDifference
    outputs: TableDifference
    evidence: TableDifference
    number: int = -1

    @property
    def step(self) -> int:
        """The number of the step in the first run."""
        if self.number >= 0:
            return self.number
        if self.a.hard or not self.outputs.differing:
            return self.a.last
        return self.a.reads_before(min(seq for seq, _ in self.outputs.differing))

    @property
    def counts(self) -> bool:
        """Whether it makes the runs different, rather than being a note."""
        return bool(self.state.pairs or self.outputs.differing)

    @property
    def of_state(self) -> bool:
        """Whether the state or what is saved differs, and not only what is read out."""
        return bool(self.state.pairs) or any(kind == EventKind.SAVE for kind, _, _ in self.outputs.places)


@dataclass
class Reported:
    """A line whose values were read out of torch, and differ.

    Args:
        first: (seq in a, seq in b) of the first that differ.
        steps: in how many steps some do.
    """

    first: tuple[int, int]
    steps: int = 0


@dataclass
class Survey:
    """What a walk over two records found.

    Args:
        boundaries: how many step boundaries were compared.
        trained: whether a run had a backward pass or an optimizer's step.
        reads: how many values were read out in both runs before they trained.
        totals: how many step boundaries each run closed, as far as the walk went.
        first: the first step that makes the runs different.
        before: how many boundaries were compared before it.
        first_state: the first step whose state, or what is saved in it, differs.
        reported: values that were read out and differ, by line.
        has_saves: whether saved values were compared.
        differing: how many steps do (what follows the last boundary is none).
        early: first step whose batch or loss differed, by kind.
        extra: values that only one run gave, by site, summed up (first run, second run).
        unmatched: (seq in a, seq in b) of the first values of a site without a counterpart in both runs.
        moved: the first step, and how many of its tensors have the same values under other names.
        lone: the first step in which one run only holds tensors that take no part in it, and how many.
        previous: the steps that were compared last.
        has_state: whether any state was compared.
        whole_sites: whether a site of reads or saves gave the same number of values in both runs.
        generators: how the random number generators fared.
        first_span: last step number of the first step of each run: later steps correspond from there on.
        final_digest: digest over the last state of each run, in hexadecimal.
        several_threads: whether more than one thread of a run made steps; such records are walked over
            by `samebits.comparison._threads`.
    """

    boundaries: int = 0
    trained: bool = False
    reads: int = 0
    totals: tuple[int, int] = (0, 0)
    first: StepDifference | None = None
    before: int = 0
    first_state: StepDifference | None = None
    reported: dict[Key, Reported] = field(default_factory=dict)
    has_saves: bool = False
    differing: int = 0
    early: dict[EventKind, int] = field(default_factory=dict)
    extra: dict[Key, tuple[int, int]] = field(default_factory=dict)
    unmatched: tuple[int, int] | None = None
    moved: tuple[int, int] | None = None
    lone: tuple[int, int] | None = None
    previous: tuple[Step, Step] | None = None
    has_state: bool = False
    whole_sites: bool = False
    generators: GeneratorLog = field(default_factory=GeneratorLog)
    first_span: tuple[int, int] = (-1, -1)
    final_digest: tuple[str, str] = ("", "")
    several_threads: bool = False


def survey(a: Record, b: Record, excused: Collection[str] = (), *, to_first: bool = False) -> Survey:
    """Compare two records step by step.

    Args:
        a: the first record.
        b: the second.
        excused: names of state tensors that are left out.
        to_first: stop behind the first step that makes them different.
    """
    result = Survey()
    outputs, beside = _short_hash(), ValuesBeside(a, b)
    last_state: tuple[Step, Step] | None = None
    threads: tuple[set[str], set[str]] = (set(), set())
    streams = [steps(record, _last_common_step(a, b)) for record in (a, b)]
    while True:
        pair = [next(stream, None) for stream in streams]
        first, second = pair
        _note_threads(pair, threads, result)
        if result.several_threads:
            return result
        if first is None or second is None or not _comparable(a, b, first, second):
            break
        if not (a.info.status == b.info.status == "finished"):
            # A script that was cut short ended at another place than its twin.
            first.ends, second.ends = [], []
        outputs.update(_compare_step((first, second), excused, beside, result))
        if held_states(first) and held_states(second):
            last_state = (first, second)
        if to_first and result.first is not None:
            result.several_threads = any(
                several_threads(record.events((EventKind.STEP,))) for record in (a, b)
            )
            return result
    rest = [_drain(step, stream, seen) for step, stream, seen in zip(pair, streams, threads, strict=True)]
    result.several_threads |= any(len(seen) > 1 for seen in threads)
    result.totals = tuple(result.boundaries + closed for closed, _ in rest)  # type: ignore[assignment]
    for which, (_, step) in enumerate(rest):
        if step is not None and last_state is not None:
            last_state = (step, last_state[1]) if which == 0 else (last_state[0], step)
    result.final_digest = _final_digest(last_state, outputs.digest(), excused)
    return result


def _last_common_step(a: Record, b: Record) -> int | None:
    """The last step to read: what comes after the point where a run was stopped is not compared."""
    limits = [record.info.steps - 1 for record in (a, b) if record.info.status == "stopped"]
    return min(limits, default=None)


def _comparable(a: Record, b: Record, first: Step, second: Step) -> bool:
    if first.closed or second.closed:
        return first.closed and second.closed
    return (not first.hard and not second.hard) or a.info.status == b.info.status == "finished"


def _compare_step(
    pair: tuple[Step, Step], excused: Collection[str], beside: ValuesBeside, result: Survey
) -> bytes:
    """Compare one step of two runs; give the digests of the outputs that both have."""
    a, b = pair
    if result.first_span == (-1, -1):
        result.first_span = (a.last, b.last)
    result.generators.add(a, b)
    only_moved = partial(beside.only_moved, steps=pair)
    outputs = compare_tables(a.outputs, b.outputs, only_moved)
    evidence = compare_tables(a.evidence, b.evidence, only_moved)
    found = StepDifference(a, b, compare_states(a, b, excused, result.previous), outputs, evidence)
    if a.states and b.states:
        result.previous = a, b
    result.boundaries += a.closed
    result.trained |= a.hard or b.hard
    result.reads += 0 if a.hard else min(a.n_reads, b.n_reads)
    result.has_state |= found.state.compared
    result.whole_sites |= outputs.whole_sites > 0
    if found.state.moved and result.moved is None:
        result.moved = a.last, found.state.moved
    if found.state.lone and result.lone is None:
        result.lone = a.last, found.state.lone
    for key, counts in outputs.extra.items():
        if key in result.extra or len(result.extra) < _FIRST:
            before = result.extra.get(key, (0, 0))
            result.extra[key] = (before[0] + counts[0], before[1] + counts[1])
    if outputs.loose and result.unmatched is None:
        result.unmatched = outputs.loose[0]
    _note_evidence(found, result)
    note_outputs(found, result)
    if found.counts:
        result.differing += a.closed or not result.boundaries
        if result.first is None:
            result.first, result.before = found, result.boundaries - a.closed
    return outputs.matched


def note_outputs(found: StepDifference, result: Survey) -> None:
    """Take in what of a step's values was saved or only read out."""
    shared = found.a.outputs.columns.keys() & found.b.outputs.columns.keys()
    result.has_saves |= any(kind == EventKind.SAVE for kind, _, _ in shared)
    if found.of_state and result.first_state is None:
        result.first_state = found
    for key, seqs in zip(found.outputs.places, found.outputs.differing, strict=True):
        if key[0] == EventKind.READ and (key in result.reported or len(result.reported) < _MOST_REPORTED):
            result.reported.setdefault(key, Reported(seqs)).steps += 1


def _note_evidence(found: StepDifference, result: Survey) -> None:
    if not found.evidence.differing or len(result.early) > 1:
        return
    for kind, _, _ in _differing_keys(found):
        result.early.setdefault(kind, found.a.last)


def _differing_keys(found: StepDifference) -> list[Key]:
    seqs = {seq for seq, _ in found.evidence.differing}
    return [key for key, column in found.a.evidence.columns.items() if seqs.intersection(column.seqs)]


def _note_threads(pair: list[Step | None], threads: tuple[set[str], set[str]], result: Survey) -> None:
    for step, seen in zip(pair, threads, strict=True):
        seen.update(step.threads if step else ())
        result.several_threads |= len(seen) > 1


def _drain(step: Step | None, stream: object, threads: set[str]) -> tuple[int, Step | None]:
    """How many further boundaries a run has, and its last step with a state beyond those compared."""
    closed, last = 0, None
    rest = iter(stream)  # type: ignore[call-overload]
    while step is not None:
        closed += step.closed
        threads |= step.threads
        if held_states(step):
            last = step
        step = next(rest, None)
    return closed, last


def _final_digest(
    last: tuple[Step, Step] | None, outputs: bytes, excused: Collection[str]
) -> tuple[str, str]:
    """Not `samebits.digest`: a comparison of two files does without torch, which takes seconds to import."""
    ours, theirs = (outputs, outputs) if last is None else final_state(*last, excused)
    return _short_hash(ours).hexdigest(), _short_hash(theirs).hexdigest()


def _short_hash(data: bytes = b"") -> hashlib.blake2b:
    return hashlib.blake2b(data, digest_size=16)
