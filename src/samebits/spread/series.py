"""What is measured: a named series of numbers in one run."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

SOURCES = ("printed", "logged", "backward", "read")


@dataclass(frozen=True, slots=True)
class Series:
    """The values of one metric in one run, in order.

    Args:
        name: as printed or logged (`val_loss`); for `backward` and `read` the source and the line,
            `backward@train.py:31`.
        source: one of `SOURCES`.
        counter: what `x` counts, such as `step` or `epoch`; empty when it is the position.
        x: parallel to `values`, strictly increasing.
        values: NaN and infinities included.
        last_place: position of its last value among all values of its source in the run.
    """

    name: str
    source: str
    counter: str
    x: tuple[float, ...]
    values: tuple[float, ...]
    last_place: int


@dataclass(frozen=True, slots=True)
class Point:
    """One number that was found.

    Args:
        name: the metric.
        value: the number.
        counters: what was counted beside it, such as `(("epoch", 3.0), ("step", 120.0))`.
    """

    name: str
    value: float
    counters: tuple[tuple[str, float], ...] = ()


_PREFERRED = (
    "global_step",
    "step",
    "steps",
    "iteration",
    "iter",
    "iters",
    "update",
    "batch",
    "episode",
    "epoch",
)


def series_of(source: str, points: list[Point]) -> tuple[Series, ...]:
    """Points of one source in one run, in order, as one series for each name."""
    grouped: dict[str, list[Point]] = {}
    last: dict[str, int] = {}
    for place, point in enumerate(points):
        grouped.setdefault(point.name, []).append(point)
        last[point.name] = place
    return tuple(_series(source, name, group, last[name]) for name, group in grouped.items())


def _series(source: str, name: str, points: list[Point], last_place: int) -> Series:
    counter, x = _abscissa(points)
    return Series(name, source, counter, x, tuple(point.value for point in points), last_place)


def _abscissa(points: list[Point]) -> tuple[str, tuple[float, ...]]:
    """The first counter that every point has and that always grows; else the position from 1."""
    counted = [dict(point.counters) for point in points]
    names = set(counted[0]).intersection(*counted[1:]) if counted else set()
    for counter in sorted(names, key=lambda name: _PREFERRED.index(name) if name in _PREFERRED else 99):
        x = tuple(counts[counter] for counts in counted)
        if all(before < after for before, after in itertools.pairwise(x)):
            return counter, x
    return "", tuple(float(position) for position in range(1, len(points) + 1))
