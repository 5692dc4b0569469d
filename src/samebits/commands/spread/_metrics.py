"""The metrics of the runs: their names, the choice of one, its curves and final values."""

from __future__ import annotations

import difflib
import itertools
import math
import re
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

from samebits.commands.spread._estimates import estimate
from samebits.commands.spread.summary import Band, Configuration, Measured, Metric
from samebits.errors import SamebitsError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from samebits.commands.spread.summary import SeedRun


@dataclass(frozen=True, slots=True)
class Series:
    """The values of one metric in one run, in order.

    Args:
        name: as printed or logged (`val_loss`); for `backward` and `read` the source and the line,
            `backward@train.py:31`.
        source: `printed`, `logged`, `backward` or `read`.
        counter: the unit of `x`, such as `step` or `epoch`; empty when it is the position.
        x: parallel to `values`, strictly increasing.
        values: NaN and infinities included.
        last_place: position of its last value among all values of its source in the run.
    """

    name: str
    source: str
    counter: str
    x: tuple[float, ...]
    values: tuple[float, ...]
    last_place: int  # saved under this name


@dataclass(frozen=True, slots=True)
class Point:
    """One number of a run.

    Args:
        name: the metric.
        value: the number.
        counters: the counts beside it, such as `(("epoch", 3.0), ("step", 120.0))`.
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
    """Return the points of one source in one run as one series for each name."""
    grouped: dict[str, list[Point]] = {}
    last: dict[str, int] = {}
    for position, point in enumerate(points):
        grouped.setdefault(point.name, []).append(point)
        last[point.name] = position
    return tuple(_series(source, name, group, last[name]) for name, group in grouped.items())


def _series(source: str, name: str, points: list[Point], last_place: int) -> Series:
    counter, x = _abscissa(points)
    return Series(name, source, counter, x, tuple(point.value for point in points), last_place)


def _abscissa(points: list[Point]) -> tuple[str, tuple[float, ...]]:
    """Return the first counter that every point has and that always grows; else the position from 1."""
    counted = [dict(point.counters) for point in points]
    names = set(counted[0]).intersection(*counted[1:]) if counted else set()
    for counter in sorted(names, key=lambda name: _PREFERRED.index(name) if name in _PREFERRED else 99):
        x = tuple(counts[counter] for counts in counted)
        if all(before < after for before, after in itertools.pairwise(x)):
            return counter, x
    return "", tuple(float(position) for position in range(1, len(points) + 1))


COUNTERS = frozenset({
    "step", "steps", "global_step", "iter", "iters", "iteration", "iterations", "it", "batch",
    "batches", "epoch", "epochs", "update", "updates", "episode", "episodes", "round",
})  # fmt: skip
QUALITY = frozenset({
    "loss", "nll", "ce", "bce", "mse", "rmse", "mae", "mape", "acc", "accuracy", "error", "err",
    "auc", "auroc", "f1", "precision", "recall", "ppl", "perplexity", "bleu", "rouge", "wer", "cer",
    "iou", "miou", "dice", "map", "ap", "psnr", "ssim", "fid", "score", "reward", "return",
    "returns", "r2", "top1", "top5", "acc1", "acc5", "acc@1", "acc@5", "prec@1", "elbo", "kl",
    "bpc", "bpb", "likelihood",
})  # fmt: skip
# These describe the run, not the quality of its result. `lr` and the like follow the schedule, not the data.
BOOKKEEPING = frozenset({
    "lr", "learning_rate", "time", "eta", "elapsed", "sec", "secs", "second", "seconds", "ms",
    "runtime", "speed", "throughput", "fps", "mem", "memory", "gb", "mb", "seed", "rank",
    "world_size", "samples_per_second", "steps_per_second", "v_num", "version", "port", "pid",
    "device", "cuda", "gpu", "total", "flos", "total_flos", "size", "num", "n", "count", "params",
    "parameters",
})  # fmt: skip
SPLITS = frozenset({
    "train", "training", "trn", "val", "valid", "validation", "eval", "evaluation", "test",
    "testing", "dev",
})  # fmt: skip
HELD_OUT = frozenset({
    "val", "valid", "validation", "eval", "evaluation", "test", "testing", "dev", "heldout",
})  # fmt: skip
FILLERS = frozenset({
    "is", "was", "of", "the", "on", "a", "an", "at", "in", "for", "to", "so", "far", "current",
    "avg", "mean", "average", "final", "best",
})  # fmt: skip
_PARTS = re.compile(r"[^A-Za-z0-9@]+")


def is_counter(name: str) -> bool:
    """Tell whether a name counts steps, epochs and the like."""
    return name.lower() in COUNTERS


def is_quality(name: str) -> bool:
    """Tell whether a name or a part of it (`val_loss`, `train/acc`, `ValLoss`) measures quality."""
    return any(part in QUALITY for part in _parts(name))


def is_held_out(name: str) -> bool:
    """Tell whether a name is that of a metric on held-out data (`val_loss`)."""
    return any(part in HELD_OUT for part in _parts(name))


def is_bookkeeping(name: str) -> bool:
    """Tell whether a name describes the run, such as its time, and not its result."""
    lower = name.lower()
    parts = _parts(name)
    return (
        lower in BOOKKEEPING
        or lower.endswith(("_per_second", "runtime", "_time"))
        or parts[-1] in BOOKKEEPING
    ) and not (parts and parts[-1] in QUALITY)


def _parts(name: str) -> list[str]:
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    return [part for part in _PARTS.split(spaced.lower()) if part] or [""]


_ENOUGH_FOR_DECILES = 10
_SOURCES = ("logged", "printed", "backward", "read")


def common_metrics(runs: Sequence[SeedRun]) -> tuple[Metric, ...]:
    """Return the metrics that all runs have; within each source, the one that ended last comes first."""
    if not runs:
        return ()
    by_run = [{(series.source, series.name): series for series in run.series} for run in runs]
    shared = [key for key in by_run[0] if all(key in series for series in by_run)]
    shared.sort(key=lambda key: (_SOURCES.index(key[0]), -by_run[0][key].last_place))
    return tuple(_metric([series[key] for series in by_run]) for key in shared)


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
    """Return the metric of that name; without a name, the one that says most about the result.

    Bookkeeping does not count. First comes the metric that was logged or printed last and whose name is known
    to measure quality (`loss`, `val_acc`), on held-out data if there is one; then the loss at the last
    backward pass; then any other metric that was logged or printed; then the value that was read last. Logged
    values come before printed ones, which are often rounded.

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
            "the runs have no metric in common: they printed nothing like `name value`, logged nothing and "
            "made no backward pass from a single loss; print one, e.g. print(f'loss {loss:.4f}')"
        )
        raise SamebitsError(message, slug="metric")
    return ranked[0]


def _named(metrics: Sequence[Metric], name: str) -> Metric:
    named = [metric for metric in metrics if metric.name == name]
    named = named or [metric for metric in metrics if metric.name.lower() == name.lower()]
    if named:
        return named[0]
    names = [metric.name for metric in metrics]
    near = difflib.get_close_matches(name, names, n=3) or names[:8]
    known = ", ".join(near) or "none: the runs have no metric in common"
    message = f"no metric named {name!r} in all runs; expected one of {known}"
    raise SamebitsError(message, slug="metric")


def measure(configuration: Configuration, metric: Metric, last: int) -> Measured:
    """Return the values of a metric in one configuration.

    Args:
        configuration: all of its runs have the metric.
        metric: the chosen one.
        last: how many values at the end are averaged to the final value.
    """
    curves = tuple(_series_of(run, metric) for run in configuration.runs)
    finals = {
        run.seed: _mean(curve.values[-last:]) for run, curve in zip(configuration.runs, curves, strict=True)
    }
    same = same_state(configuration.runs)
    return Measured(configuration, curves, finals, estimate(finals), band(curves), same)


def same_state(runs: Sequence[SeedRun]) -> bool:
    """Tell whether all runs ended in the same bits."""
    return len(runs) > 1 and bool(runs[0].state) and len({run.state for run in runs}) == 1


def _mean(values: Sequence[float]) -> float:
    return statistics.fmean(values) if len(values) > 1 else values[0]


def _series_of(run: SeedRun, metric: Metric) -> Series:
    return next(one for one in run.series if (one.source, one.name) == (metric.source, metric.name))


def band(curves: Sequence[Series]) -> Band | None:
    """Return the median and the range of the curves at the positions that all of them have.

    Values that are not finite count as infinite, so that one diverged run widens the band and does not
    empty it.
    """
    if len(curves) < 2:
        return None
    tables = [dict(zip(curve.x, curve.values, strict=True)) for curve in curves]
    x = [position for position in tables[0] if all(position in table for table in tables)]
    if not x:
        return None
    columns = [sorted(_ordered(table[position]) for table in tables) for position in x]
    deciles = len(curves) >= _ENOUGH_FOR_DECILES
    low = [quantile(column, 0.1) if deciles else column[0] for column in columns]
    high = [quantile(column, 0.9) if deciles else column[-1] for column in columns]
    median = [quantile(column, 0.5) for column in columns]
    label = "10-90 %" if deciles else "min-max"
    return Band(tuple(x), tuple(median), tuple(low), tuple(high), label)


def quantile(ordered: Sequence[float], share: float) -> float:
    """Return a quantile by linear interpolation (NumPy's default)."""
    position = share * (len(ordered) - 1)
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    rest = position - below
    if rest == 0 or ordered[below] == ordered[above]:
        return ordered[below]
    return ordered[below] * (1 - rest) + ordered[above] * rest


def _ordered(value: float) -> float:
    return math.inf if math.isnan(value) else value
