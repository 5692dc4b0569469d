"""Counts of tensors by module and step, in a bounded number of rows and columns."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from samebits._text.str_enum import StrEnum
from samebits.records.kinds import Role

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from samebits.records.events import TensorInfo

MOST_COLUMNS = 160
MOST_ROWS = 24
_FEW_ROWS = 6
_STATE = (Role.PARAM, Role.BUFFER, Role.GRAD, Role.OPTIMIZER)


class RowKind(StrEnum):
    """What a row of a chart counts, in the order of the rows."""

    GENERATORS = "generators"
    BATCHES = "batches"
    MODULE = "module"
    """State tensors of one module: parameters, buffers, gradients, optimizer state."""
    LOSSES = "losses"
    VALUES = "values"
    """Values that were read out of torch or saved."""


_ORDER = tuple(RowKind)


@dataclass(frozen=True)
class StepRow:
    """One row of a chart.

    Args:
        kind: what it counts.
        name: path of the module; empty for the root module, and for rows of another kind.
        joined: how many modules are in it.
        first: the first step with a count; None where there is none.
        most: the largest count of a step.
        held: how many there are to count, in the step with the most.
        shares: for each column the largest count of its steps, divided by `held`: 0 to 1.
    """

    kind: RowKind
    name: str
    joined: int
    first: int | None
    most: int
    held: int
    shares: tuple[float, ...]


@dataclass(frozen=True)
class StepChart:
    """Rows by steps.

    Args:
        steps: how many steps there are, from step 0.
        width: how many steps a column stands for.
        rows: in the order of the record.
        totals: for each column the largest count of state tensors in one of its steps; None where no step of
            it has state, such as what comes after the last one.
        held: how many state tensors a step has, at most.
        modules: how many modules there are; more than the rows, where some are joined.
        first: the first step with a count in any row.
    """

    steps: int
    width: int
    rows: tuple[StepRow, ...]
    totals: tuple[int | None, ...]
    held: int
    modules: int
    first: int | None


class ModulePaths:
    """The modules that the tensors of a step belong to, by their names."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[object, tuple[str, ...]]] = {}

    def of(self, tensors: tuple[TensorInfo, ...]) -> tuple[str, ...]:
        """Return the path of the module of each tensor of an event; empty for the root module.

        Records give the same object for the same tensors, so each is looked at once.
        """
        known = self._known.get(id(tensors))
        if known is None or known[0] is not tensors:
            own = {info.name for info in tensors if info.role != Role.OPTIMIZER}
            paths = tuple([_path(info, own) for info in tensors])
            known = self._known[id(tensors)] = (tensors, paths)
        return known[1]


def _path(info: TensorInfo, owners: set[str]) -> str:
    """Return `0` for the parameter `0.weight` and for the optimizer's `0.weight.exp_avg`."""
    if info.role not in _STATE:
        return ""
    name = info.name
    while info.role == Role.OPTIMIZER and name and name not in owners:
        name = name.rpartition(".")[0]
    return name.rpartition(".")[0]


@dataclass
class _Row:
    first: int | None = None
    most: int = 0
    held: int = 0
    columns: dict[int, int] = field(default_factory=dict)


class ChartBuilder:
    """Takes in steps one after the other, and makes a chart of them.

    Columns that would be too many are joined two by two, so any number of steps takes bounded memory.
    """

    def __init__(self) -> None:
        self._width = 1
        self._rows: dict[tuple[RowKind, str], _Row] = {}
        self._totals: Counter[int] = Counter()
        self._held = 0
        self._steps = 0

    def add(self, step: int, kind: RowKind, name: str, count: int, held: int) -> None:
        """Take in what one row has in one step."""
        row = self._rows.setdefault((kind, name), _Row())
        row.held = max(row.held, held, count)
        self._make_room(step)
        if count:
            column = step // self._width
            row.first = step if row.first is None else row.first
            row.most = max(row.most, count)
            row.columns[column] = max(row.columns.get(column, 0), count)

    def add_state(self, step: int, counts: Counter[str], held: Counter[str]) -> None:
        """Take in the state of one step: for each module, how many of its tensors count, of how many."""
        for name in held | counts:
            self.add(step, RowKind.MODULE, name, counts[name], held[name])
        self._make_room(step)
        total, column = counts.total(), step // self._width
        self._totals[column] = max(self._totals[column], total)
        self._held = max(self._held, held.total(), total)

    def _make_room(self, step: int) -> None:
        """Widen the columns until there are few enough."""
        self._steps = max(self._steps, step + 1)
        while step // self._width >= MOST_COLUMNS:
            self._width *= 2
            self._totals = Counter(_halved(self._totals))
            for row in self._rows.values():
                row.columns = _halved(row.columns)

    def chart(self) -> StepChart:
        """Return the chart of what was taken in."""
        n_columns = max(1, -(-self._steps // self._width))
        rows = [_frozen(kind, name, row, n_columns) for (kind, name), row in self._rows.items()]
        modules = [row for row in rows if row.kind == RowKind.MODULE]
        shown = [*(row for row in rows if row.kind != RowKind.MODULE), *_grouped(modules)]
        return StepChart(
            steps=self._steps,
            width=self._width,
            rows=tuple(sorted(shown, key=lambda row: _ORDER.index(row.kind))),
            totals=tuple(self._totals.get(column) for column in range(n_columns)),
            held=self._held,
            modules=len(modules),
            first=min((row.first for row in rows if row.first is not None), default=None),
        )


def _halved(columns: Mapping[int, int]) -> dict[int, int]:
    """Join columns two by two; the larger count stays."""
    halved: dict[int, int] = {}
    for column, count in columns.items():
        halved[column // 2] = max(halved.get(column // 2, 0), count)
    return halved


def _frozen(kind: RowKind, name: str, row: _Row, n_columns: int) -> StepRow:
    shares = tuple(row.columns.get(column, 0) / max(1, row.held) for column in range(n_columns))
    return StepRow(kind, name, 1, row.first, row.most, row.held, shares)


def _grouped(modules: Sequence[StepRow]) -> list[StepRow]:
    """Join modules under a common parent until there are few enough rows.

    Where that would leave very few, those that come first in time stay, and the others are one row.
    """
    if len(modules) <= MOST_ROWS:
        return list(modules)
    deepest = max(row.name.count(".") for row in modules) + 1
    levels = [_at_depth(modules, depth) for depth in range(deepest + 1)]
    fitting = max(depth for depth, rows in enumerate(levels) if len(rows) <= MOST_ROWS)
    if len(levels[fitting]) >= _FEW_ROWS or fitting == deepest:
        return levels[fitting]
    finer = levels[fitting + 1]
    late = sorted(finer, key=lambda row: (row.first is None, row.first or 0))[MOST_ROWS - 1 :]
    kept = [row for row in finer if not any(row is each for each in late)]
    return [*kept, replace(_joined("", late), joined=sum(row.joined for row in late))]


def _at_depth(modules: Iterable[StepRow], depth: int) -> list[StepRow]:
    groups: dict[str, list[StepRow]] = defaultdict(list)
    for row in modules:
        groups[".".join(row.name.split(".")[:depth])].append(row)
    return [rows[0] if len(rows) == 1 else _joined(name, rows) for name, rows in groups.items()]


def _joined(name: str, rows: Sequence[StepRow]) -> StepRow:
    """Return one row for several; its largest count is at most the sum of theirs."""
    held = sum(row.held for row in rows)
    shares = tuple(
        sum(row.shares[column] * row.held for row in rows) / max(1, held)
        for column in range(len(rows[0].shares))
    )
    first = min((row.first for row in rows if row.first is not None), default=None)
    most = round(max(shares, default=0.0) * held)
    return StepRow(RowKind.MODULE, name, sum(row.joined for row in rows), first, most, held, shares)
