"""Which metrics the runs have, which one is taken, and its curves and final values."""

from __future__ import annotations

import difflib
import math
import statistics
from typing import TYPE_CHECKING

from samebits.errors import SamebitsError
from samebits.spread.estimates import estimate
from samebits.spread.results import Band, Configuration, Measured, Metric
from samebits.spread.words import is_bookkeeping, is_held_out, is_quality

if TYPE_CHECKING:
    from collections.abc import Sequence

    from samebits.spread.results import SeedRun
    from samebits.spread.series import Series

_ENOUGH_FOR_DECILES = 10
_ORDER = ("logged", "printed", "backward", "read")


def common_metrics(runs: Sequence[SeedRun]) -> tuple[Metric, ...]:
    """The metrics that all runs have, those that ended last first, within each source."""
    if not runs:
        return ()
    by_run = [{(series.source, series.name): series for series in run.series} for run in runs]
    shared = [key for key in by_run[0] if all(key in found for found in by_run)]
    shared.sort(key=lambda key: (_ORDER.index(key[0]), -by_run[0][key].last_place))
    return tuple(_metric([found[key] for found in by_run]) for key in shared)


def _metric(series: Sequence[Series]) -> Metric:
    lengths = [len(one.values) for one in series]
    last = {repr(one.values[-1]) for one in series}
    return Metric(
        name=series[0].name,
        source=series[0].source,
        values=(min(lengths), max(lengths)),
        bookkeeping=is_bookkeeping(series[0].name),
        quality=is_quality(series[0].name),
        varies=len(last) > 1,
    )


def choose(metrics: Sequence[Metric], name: str | None) -> Metric:
    """The metric that is asked for; without a name the one that says most of the result.

    That is, of those that are no bookkeeping: the one logged or printed last whose name is known to say how
    good a result is (`loss`, `val_acc`), on held-out data if there is one; else the loss at the last backward
    pass; else any other that was logged or printed; else the value that was read last. What was logged comes
    before what was printed, which is often rounded.

    Raises:
        SamebitsError: there is none, or none of that name; `metric`.
    """
    if name is not None:
        return _named(metrics, name)
    result = [metric for metric in metrics if not metric.bookkeeping]
    told = [metric for metric in result if metric.source in ("printed", "logged")]
    ranked = [
        *(metric for metric in told if metric.quality and is_held_out(metric.name)),
        *(metric for metric in told if metric.quality),
        *(metric for metric in result if metric.source == "backward"),
        *(metric for metric in told if metric.varies),
        *(metric for metric in result if metric.source == "read" and metric.varies),
        *metrics,
    ]
    if not ranked:
        message = (
            "the runs have no metric in common: nothing like `name value` was printed, nothing logged, "
            "no backward pass of a single loss; expected one, e.g. print(f'loss {loss:.4f}')"
        )
        raise SamebitsError(message, slug="metric")
    return ranked[0]


def _named(metrics: Sequence[Metric], name: str) -> Metric:
    found = [metric for metric in metrics if metric.name == name]
    found = found or [metric for metric in metrics if metric.name.lower() == name.lower()]
    if found:
        return found[0]
    names = [metric.name for metric in metrics]
    near = difflib.get_close_matches(name, names, n=3) or names[:8]
    known = ", ".join(near) or "none: the runs have no metric in common"
    message = f"no metric named {name!r} in all runs; expected one of {known}"
    raise SamebitsError(message, slug="metric")


def measure(configuration: Configuration, metric: Metric, last: int) -> Measured:
    """One configuration, seen through a metric.

    Args:
        configuration: all of its runs have the metric.
        metric: which.
        last: how many values at the end are averaged to the final value.
    """
    curves = tuple(_series(run, metric) for run in configuration.runs)
    finals = {
        run.seed: _mean(curve.values[-last:]) for run, curve in zip(configuration.runs, curves, strict=True)
    }
    same = same_state(configuration.runs)
    return Measured(configuration, curves, finals, estimate(finals), band(curves), same)


def same_state(runs: Sequence[SeedRun]) -> bool:
    """Whether all runs ended in the same bits."""
    return len(runs) > 1 and bool(runs[0].state) and len({run.state for run in runs}) == 1


def _mean(values: Sequence[float]) -> float:
    return statistics.fmean(values) if len(values) > 1 else values[0]


def _series(run: SeedRun, metric: Metric) -> Series:
    return next(one for one in run.series if (one.source, one.name) == (metric.source, metric.name))


def band(curves: Sequence[Series]) -> Band | None:
    """The middle and the width of the curves at the positions that all of them have.

    Values that are not finite count as infinite, so that one diverged run widens the band and does not
    empty it.
    """
    if len(curves) < 2:
        return None
    tables = [dict(zip(curve.x, curve.values, strict=True)) for curve in curves]
    x = [place for place in tables[0] if all(place in table for table in tables)]
    if not x:
        return None
    columns = [sorted(_ordered(table[place]) for table in tables) for place in x]
    deciles = len(curves) >= _ENOUGH_FOR_DECILES
    low = [quantile(column, 0.1) if deciles else column[0] for column in columns]
    high = [quantile(column, 0.9) if deciles else column[-1] for column in columns]
    median = [quantile(column, 0.5) for column in columns]
    label = "10-90 %" if deciles else "min-max"
    return Band(tuple(x), tuple(median), tuple(low), tuple(high), label)


def quantile(ordered: Sequence[float], share: float) -> float:
    """A quantile by linear interpolation (NumPy's default)."""
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    rest = place - below
    if rest == 0 or ordered[below] == ordered[above]:
        return ordered[below]
    return ordered[below] * (1 - rest) + ordered[above] * rest


def _ordered(value: float) -> float:
    return math.inf if math.isnan(value) else value
