"""Compares two records step by step."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import chain
from typing import TYPE_CHECKING

from samebits.comparison._generator_states import GeneratorLog
from samebits.comparison.states import StateDifference, compare_states, final_state, held_states
from samebits.comparison.steps import Key, Step, TableDifference, compare_tables, key_of, steps
from samebits.records.events import several_threads
from samebits.records.kinds import EventKind

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from samebits.comparison.lookup import Record
    from samebits.comparison.steps import Column

    ByThread = dict[str, Counter[tuple[bytes, ...]]]

_KINDS = (EventKind.BATCH, EventKind.READ, EventKind.SAVE)


class UnsteppedValues:
    """The values of threads that make no steps, such as one that loads samples ahead of the training loop.

    It is chance in which step such a thread gives a value. So a difference within one step shows nothing: the
    runs differ only if the values of the thread as a whole do.

    Args:
        a: the first record.
        b: the second.
    """

    def __init__(self, a: Record, b: Record) -> None:
        self._records = a, b
        self._whole = a.info.status == b.info.status == "finished"
        self._known: dict[Key, bool] = {}

    def only_moved(self, key: Key, columns: tuple[Column, Column], steps: tuple[Step, Step]) -> bool:
        """Tell whether values of one site that differ in a step are the same over the whole of both runs.

        Args:
            key: the site.
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
        # In runs that ended early, each thread stopped where it was, further in one run than in the other.
        common = ours.keys() & theirs.keys()
        rest = (_total({name: log[name] for name in log.keys() - common}) for log in (ours, theirs))
        return _hold(*rest) and all(_hold(ours[name], theirs[name]) for name in common)

    @cached_property
    def _values(self) -> list[dict[Key, ByThread]]:
        logs: list[dict[Key, ByThread]] = []
        for record in self._records:
            log: dict[Key, ByThread] = defaultdict(lambda: defaultdict(Counter))
            for event in record.events(_KINDS):
                log[key_of(event)][event.thread][event.digests] += 1
            logs.append(log)
        return logs


def _total(threads: ByThread) -> Counter[tuple[bytes, ...]]:
    return sum(threads.values(), start=Counter())


def _hold(a: Counter[tuple[bytes, ...]], b: Counter[tuple[bytes, ...]]) -> bool:
    """Tell whether all values of one are among those of the other."""
    return a <= b or b <= a


_FIRST = 20  # sites whose extra values are remembered
_MOST_REPORTED = 1000  # lines whose values differ


@dataclass(frozen=True)
class StepDifference:
    """The differences between two runs in one step.

    Args:
        a: the step of the first run.
        b: the step of the second run.
        state: state at its boundary.
        outputs: reads and saves.
        evidence: batches and losses.
        number: of the step in the first run. The default is that of `a`; in a script that does not train, the
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
        """True if it makes the runs different, rather than being a note."""
        return bool(self.state.pairs or self.outputs.differing)

    @property
    def of_state(self) -> bool:
        """True if the state or a saved value differs, and not only values that are read out."""
        return bool(self.state.pairs) or any(kind == EventKind.SAVE for kind, _, _ in self.outputs.keys)


@dataclass
class Reported:
    """A line whose values were read out of torch, and differ.

    Args:
        first: (seq in a, seq in b) of the first that differ.
        steps: the number of steps in which some differ.
    """

    first: tuple[int, int]
    steps: int = 0


@dataclass
class Survey:
    """The comparison of two records, step by step.

    Args:
        boundaries: how many step boundaries were compared.
        trained: whether a run had a backward pass or an optimizer's step.
        reads: how many values were read out in both runs before they trained.
        totals: how many step boundaries each run closed, as far as the walk went.
        first: the first step that makes the runs different.
        before: how many boundaries were compared before it.
        first_state: the first step whose state or saved values differ.
        reported: values that were read out and differ, by line.
        has_saves: whether saved values were compared.
        early: first step whose batch or loss differed, by kind.
        extra: values that only one run gave, by site, summed up (first run, second run).
        unmatched: (seq in a, seq in b) of the first values of a site without a counterpart in both runs.
        moved: the first step, and how many of its tensors have the same values under other names.
        lone: the first step in which only one run holds tensors that take no part in it, and how many.
        previous: the steps that were compared last.
        has_state: whether any state was compared.
        whole_sites: whether a site of reads or saves gave the same number of values in both runs.
        generators: the states of the random number generators.
        first_span: last step number of the first step of each run: later steps correspond from there on.
        final_digest: digest over the last state of each run, in hexadecimal.
        several_threads: whether more than one thread of a run made steps; then
            `samebits.comparison._threads` compares the records.
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


def survey(a: Record, b: Record, excluded: Collection[str] = (), *, to_first: bool = False) -> Survey:
    """Compare two records step by step.

    Args:
        a: the first record.
        b: the second.
        excluded: names of state tensors that are left out.
        to_first: stop after the first step that makes them different.
    """
    result = Survey()
    outputs, unstepped = _short_hash(), UnsteppedValues(a, b)
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
        _forget_ends(a, b, (first, second))
        outputs.update(_compare_step((first, second), excluded, unstepped, result))
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
    result.final_digest = _final_digest(last_state, outputs.digest(), excluded)
    return result


def last_steps(a: Record, b: Record, survey: Survey) -> tuple[int, int]:
    """Return the last step of each run to examine: the first that differs."""
    if survey.first is None:
        return a.info.steps, b.info.steps
    return survey.first.a.last, survey.first.b.last


def paired_steps(a: Record, b: Record) -> Iterator[tuple[Step, Step]]:
    """Yield the steps of two runs side by side, as far as they can be compared."""
    streams = (steps(record, _last_common_step(a, b)) for record in (a, b))
    for first, second in zip(*streams, strict=False):
        if not _comparable(a, b, first, second):
            return
        _forget_ends(a, b, (first, second))
        yield first, second


def _forget_ends(a: Record, b: Record, pair: tuple[Step, Step]) -> None:
    """Leave out the ends of two scripts where one was cut short: it ended at another point than its twin."""
    if not (a.info.status == b.info.status == "finished"):
        for step in pair:
            step.ends = []


def _last_common_step(a: Record, b: Record) -> int | None:
    """Return the last step to read: the events after the point where a run was stopped are not compared."""
    limits = [record.info.steps - 1 for record in (a, b) if record.info.status == "stopped"]
    return min(limits, default=None)


def _comparable(a: Record, b: Record, first: Step, second: Step) -> bool:
    if first.closed or second.closed:
        return first.closed and second.closed
    return (not first.hard and not second.hard) or a.info.status == b.info.status == "finished"


def _compare_step(
    pair: tuple[Step, Step], excluded: Collection[str], unstepped: UnsteppedValues, result: Survey
) -> bytes:
    """Compare one step of two runs, and return the digests of the outputs that both have."""
    a, b = pair
    if result.first_span == (-1, -1):
        result.first_span = (a.last, b.last)
    result.generators.add(a, b)
    only_moved = partial(unstepped.only_moved, steps=pair)
    outputs = compare_tables(a.outputs, b.outputs, only_moved)
    evidence = compare_tables(a.evidence, b.evidence, only_moved)
    difference = StepDifference(a, b, compare_states(a, b, excluded, result.previous), outputs, evidence)
    if a.states and b.states:
        result.previous = a, b
    result.boundaries += a.closed
    result.trained |= a.hard or b.hard
    result.reads += 0 if a.hard else min(a.n_reads, b.n_reads)
    result.has_state |= difference.state.compared
    result.whole_sites |= outputs.whole_sites > 0
    if difference.state.moved and result.moved is None:
        result.moved = a.last, difference.state.moved
    if difference.state.lone and result.lone is None:
        result.lone = a.last, difference.state.lone
    for key, counts in outputs.extra.items():
        if key in result.extra or len(result.extra) < _FIRST:
            before = result.extra.get(key, (0, 0))
            result.extra[key] = (before[0] + counts[0], before[1] + counts[1])
    if outputs.loose and result.unmatched is None:
        result.unmatched = outputs.loose[0]
    _note_evidence(difference, result)
    note_outputs(difference, result)
    if difference.counts and result.first is None:
        result.first, result.before = difference, result.boundaries - a.closed
    return outputs.matched


def note_outputs(difference: StepDifference, result: Survey) -> None:
    """Note which values of a step were saved, and which only read out."""
    shared = difference.a.outputs.columns.keys() & difference.b.outputs.columns.keys()
    result.has_saves |= any(kind == EventKind.SAVE for kind, _, _ in shared)
    if difference.of_state and result.first_state is None:
        result.first_state = difference
    for key, seqs in zip(difference.outputs.keys, difference.outputs.differing, strict=True):
        if key[0] == EventKind.READ and (key in result.reported or len(result.reported) < _MOST_REPORTED):
            result.reported.setdefault(key, Reported(seqs)).steps += 1


def _note_evidence(difference: StepDifference, result: Survey) -> None:
    if not difference.evidence.differing or len(result.early) > 1:
        return
    for kind, _, _ in _differing_keys(difference):
        result.early.setdefault(kind, difference.a.last)


def _differing_keys(difference: StepDifference) -> list[Key]:
    seqs = {seq for seq, _ in difference.evidence.differing}
    return [key for key, column in difference.a.evidence.columns.items() if seqs.intersection(column.seqs)]


def _note_threads(pair: list[Step | None], threads: tuple[set[str], set[str]], result: Survey) -> None:
    for step, seen in zip(pair, threads, strict=True):
        seen.update(step.threads if step else ())
        result.several_threads |= len(seen) > 1


def _drain(step: Step | None, stream: Iterable[Step], threads: set[str]) -> tuple[int, Step | None]:
    """Count the boundaries that a run has left, and return its last step with a state among them."""
    closed, last = 0, None
    for each in () if step is None else chain([step], stream):
        closed += each.closed
        threads |= each.threads
        if held_states(each):
            last = each
    return closed, last


def _final_digest(
    last: tuple[Step, Step] | None, outputs: bytes, excluded: Collection[str]
) -> tuple[str, str]:
    # Not `samebits.digest`: a comparison of two files does without torch, which takes seconds to import.
    ours, theirs = (outputs, outputs) if last is None else final_state(*last, excluded)
    return _short_hash(ours).hexdigest(), _short_hash(theirs).hexdigest()


def _short_hash(data: bytes = b"") -> hashlib.blake2b:
    return hashlib.blake2b(data, digest_size=16)
