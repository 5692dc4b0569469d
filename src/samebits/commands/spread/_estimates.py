"""Mean, deviation and interval of the final values, and whether two configurations differ beyond them.

Intervals and p values are scipy's. Without scipy there are none, and the report says so.
"""

from __future__ import annotations

import dataclasses
import importlib
import itertools
import math
import statistics
import warnings
from typing import TYPE_CHECKING, Any

from samebits.commands.spread.summary import LEAST_EACH, LEAST_PAIRS, Contrast, ContrastReason, Estimate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

LEVEL = 0.95
_RESAMPLES = 9999
_EXACT_PAIRS = 13  # 2**13 sign flips are fewer than the resamples


def scipy_stats() -> Any:
    """Return `scipy.stats`, or None where scipy is not installed."""
    try:
        return importlib.import_module("scipy.stats")
    except ImportError:
        return None


def estimate(finals: Mapping[int, float]) -> Estimate | None:
    """Return the estimate from the finite values; None when there are none.

    Args:
        finals: value by seed.
    """
    values = [value for value in finals.values() if math.isfinite(value)]
    if not values:
        return None
    left_out = tuple(seed for seed, value in finals.items() if not math.isfinite(value))
    gaps = [abs(a - b) for a, b in itertools.combinations(values[:500], 2)]
    mean = statistics.fmean(values)
    sd = statistics.stdev(values) if len(values) > 1 else math.nan
    return Estimate(
        n=len(values),
        mean=mean,
        sd=sd,
        interval=_t_interval(mean, sd, len(values)),
        least=min(values),
        most=max(values),
        gap=statistics.median(gaps) if gaps else math.nan,
        left_out=left_out,
    )


def _t_interval(mean: float, sd: float, n: int) -> tuple[float, float] | None:
    stats = scipy_stats()
    if stats is None or n < 2:
        return None
    half = float(stats.t.ppf((1 + LEVEL) / 2, n - 1)) * sd / math.sqrt(n)
    return mean - half, mean + half


def contrast(first: Mapping[int, float], second: Mapping[int, float]) -> Contrast:
    """Tell whether two configurations differ beyond seed noise: the second minus the first.

    Values of the same seed are compared if at least six seeds have both; else all with all.

    Args:
        first: final value by seed.
        second: the same of the other configuration.
    """
    a, b = _finite(first), _finite(second)
    common = [seed for seed in a if seed in b]
    paired = len(common) >= LEAST_PAIRS or set(a) == set(b)
    n = (len(common), len(common)) if paired else (len(a), len(b))
    if min(n) < (LEAST_PAIRS if paired else LEAST_EACH):
        return Contrast("cannot tell", ContrastReason.TOO_FEW, n, paired)
    if scipy_stats() is None:
        return Contrast("cannot tell", ContrastReason.NO_SCIPY, n, paired)
    if paired:
        result = _paired([a[seed] for seed in common], [b[seed] for seed in common])
    else:
        result = _unpaired(list(a.values()), list(b.values()))
    return dataclasses.replace(result, opposite=_opposite(a, b, result.difference or 0.0))


def _opposite(a: Mapping[int, float], b: Mapping[int, float], difference: float) -> float | None:
    """Return how often one run of each, with different seeds, shows the opposite of the difference."""
    gaps = [second - first for i, first in a.items() for j, second in b.items() if i != j]
    if not difference or not gaps:
        return None
    return sum((gap > 0) != (difference > 0) for gap in gaps) / len(gaps)


def _finite(finals: Mapping[int, float]) -> dict[int, float]:
    return {seed: value for seed, value in finals.items() if math.isfinite(value)}


def _paired(a: Sequence[float], b: Sequence[float]) -> Contrast:
    stats = scipy_stats()
    differences = [y - x for x, y in zip(a, b, strict=True)]
    n = (len(a), len(a))
    if not any(differences):
        return Contrast("no", ContrastReason.SAME_VALUES, n, paired=True, difference=0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # differences that are all alike have no variance
        welch_p = float(stats.ttest_ind(b, a, equal_var=False).pvalue)
        tested = stats.ttest_rel(b, a)
        interval = tested.confidence_interval(LEVEL)
        permuted = stats.permutation_test(
            (differences,),
            lambda d, axis: d.mean(axis=axis),
            permutation_type="samples",
            vectorized=True,
            n_resamples=2 ** len(a) if len(a) <= _EXACT_PAIRS else _RESAMPLES,
            rng=0,
        )
    return _judged(
        Contrast(
            *("no", ContrastReason.NO_TEST, n, True),
            difference=statistics.fmean(differences),
            interval=(float(interval.low), float(interval.high)),
            t_p=float(tested.pvalue),
            permutation_p=float(permuted.pvalue),
            welch_p=welch_p,
        )
    )


def _unpaired(a: Sequence[float], b: Sequence[float]) -> Contrast:
    stats = scipy_stats()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tested = stats.ttest_ind(b, a, equal_var=False)
        interval = tested.confidence_interval(LEVEL)
        permuted = stats.permutation_test(
            (b, a),
            lambda x, y, axis: x.mean(axis=axis) - y.mean(axis=axis),
            vectorized=True,
            n_resamples=_RESAMPLES,
            rng=0,
        )
    return _judged(
        Contrast(
            *("no", ContrastReason.NO_TEST, (len(a), len(b)), False),
            difference=statistics.fmean(b) - statistics.fmean(a),
            interval=(float(interval.low), float(interval.high)),
            t_p=float(tested.pvalue),
            permutation_p=float(permuted.pvalue),
            welch_p=float(tested.pvalue),
        )
    )


def _judged(tested: Contrast) -> Contrast:
    """Return the contrast with its verdict, which was `no`: both tests must agree."""
    significant = [p < 1 - LEVEL for p in (tested.t_p, tested.permutation_p) if p is not None]
    if all(significant):
        return dataclasses.replace(tested, verdict="yes", reason=ContrastReason.BOTH_TESTS)
    if any(significant):
        return dataclasses.replace(tested, verdict="cannot tell", reason=ContrastReason.ONE_TEST)
    return tested
