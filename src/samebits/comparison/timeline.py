"""Where two runs differ, by module and step: where a difference began, and how it spread."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING

from samebits.comparison._survey import UnsteppedValues, paired_steps
from samebits.comparison.changed_code import on_common_lines
from samebits.comparison.states import compare_states
from samebits.comparison.step_chart import ChartBuilder, ModulePaths, RowKind, StepChart
from samebits.comparison.steps import compare_tables
from samebits.records.events import EARLIER, several_threads
from samebits.records.kinds import EventKind
from samebits.rng.sources import is_seeded_by

if TYPE_CHECKING:
    from collections.abc import Collection

    from samebits.comparison.lookup import Record
    from samebits.comparison.states import StateDifference
    from samebits.comparison.steps import Step, Table, TableDifference

_TABLE_ROWS = {
    EventKind.BATCH: RowKind.BATCHES,
    EventKind.LOSS: RowKind.LOSSES,
    EventKind.READ: RowKind.VALUES,
    EventKind.SAVE: RowKind.VALUES,
}


def timeline(a: Record, b: Record, excluded: Collection[str] = ()) -> StepChart | None:
    """Count what differs between two runs in each step, by module.

    A record holds digests, so a tensor differs or does not; how far it is apart cannot be told from them.

    Args:
        a: the first record.
        b: the second.
        excluded: names of state tensors that are left out, as in the verdict.

    Returns:
        None where steps cannot be paired, as several threads make them, or where there are none.

    Raises:
        SamebitsError: `record-damaged`.
    """
    if any(several_threads(record.events((EventKind.STEP,))) for record in (a, b)):
        return None
    a, b = on_common_lines(a, b)
    builder = ChartBuilder()
    unstepped, paths = UnsteppedValues(a, b), ModulePaths()
    previous: tuple[Step, Step] | None = None
    generators = _UsedGenerators(), _UsedGenerators()
    for pair in paired_steps(a, b):
        _add_generators(pair, generators, builder)
        _add_step(pair, previous, excluded, (builder, paths, unstepped))
        if pair[0].states and pair[1].states:
            previous = pair
    chart = builder.chart()
    return chart if chart.rows else None


def _add_step(
    pair: tuple[Step, Step],
    previous: tuple[Step, Step] | None,
    excluded: Collection[str],
    into: tuple[ChartBuilder, ModulePaths, UnsteppedValues],
) -> None:
    (a, b), (builder, paths, unstepped) = pair, into
    only_moved = partial(unstepped.only_moved, steps=pair)
    step = a.last
    for tables in ((a.evidence, b.evidence), (a.outputs, b.outputs)):
        _add_tables(step, tables, compare_tables(*tables, only_moved), builder)
    held = _held(a, paths)
    if a.closed and b.closed and (held or b.states or b.grads):
        counts = _differing(compare_states(a, b, excluded, previous), paths)
        builder.add_state(step, counts, held)


class _UsedGenerators:
    """The generators that a run has drawn from or seeded so far: the states of the others mean nothing."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self._before: dict[str, bytes] = {}

    def add(self, step: Step) -> None:
        """Take in the next step."""
        calls = [event.arguments for event in step.seeds if not event.arguments.endswith(EARLIER)]
        seeded = {name for name in step.generators for call in calls if is_seeded_by(name, call)}
        moved = {name for name, state in step.generators.items() if self._before.get(name, state) != state}
        self.names |= step.drawn | moved | seeded
        self._before.update(step.generators)


def _add_generators(
    pair: tuple[Step, Step], used: tuple[_UsedGenerators, _UsedGenerators], builder: ChartBuilder
) -> None:
    a, b = (each.generators for each in pair)
    for run, step in zip(used, pair, strict=True):
        run.add(step)
    shared = a.keys() & b.keys() & (used[0].names | used[1].names)
    if shared:
        differing = sum(a[name] != b[name] for name in shared)
        builder.add(pair[0].last, RowKind.GENERATORS, "", differing, len(shared))


def _add_tables(
    step: int, tables: tuple[Table, Table], difference: TableDifference, builder: ChartBuilder
) -> None:
    """Count the lines of the script whose batches, losses or values differ."""
    lines = Counter(_TABLE_ROWS[key[0]] for key in tables[0].columns if key[0] in _TABLE_ROWS)
    differing = Counter(_TABLE_ROWS[key[0]] for key in difference.keys if key[0] in _TABLE_ROWS)
    for kind in lines | differing:
        builder.add(step, kind, "", differing[kind], lines[kind])


def _held(step: Step, paths: ModulePaths) -> Counter[str]:
    """Count the state tensors of a step by module: each name once."""
    held: Counter[str] = Counter()
    seen: set[int] = set()
    for event in (*step.grads, *step.states):
        if id(event.tensors) not in seen:
            seen.add(id(event.tensors))
            held.update(paths.of(event.tensors))
    return held


def _differing(difference: StateDifference, paths: ModulePaths) -> Counter[str]:
    counts: Counter[str] = Counter()
    for pair in difference.pairs:
        tensor = pair.a or pair.b
        if tensor is not None:
            counts[paths.of(tensor.event.tensors)[tensor.position]] += 1
    return counts
