"""The results of running a script with several seeds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from samebits._text.str_enum import StrEnum

if TYPE_CHECKING:
    from samebits.commands.spread._metrics import Series
    from samebits.commands.spread.remarks import Remark

# The smallest p of a sign-flip test with 5 pairs is 2/32, of an exchange test with 3 and 3 values 2/20: above
# 0.05 for any values.
LEAST_PAIRS = 6
LEAST_EACH = 4


@dataclass(frozen=True, slots=True)
class Seeding:
    """A call by which the script seeds a generator itself.

    Args:
        file: of the call.
        line: of the call.
        call: with its arguments, such as `torch.manual_seed(7)`.
    """

    file: str
    line: int
    call: str


@dataclass(frozen=True, slots=True)
class SeedRun:
    """One finished run.

    Args:
        seed: of the run.
        seconds: its duration.
        steps: step boundaries.
        state: one digest over all tensors of its last state, empty when it had none.
        threads: torch's number of threads, None when the script did not import torch.
        seedings: calls by which the script seeds itself.
        saved: paths passed to `torch.save`.
        files: the script's own source files, each with its SHA-256; empty where the file was changed while
            the run used it.
        series: the measured values.
    """

    seed: int
    seconds: float
    steps: int
    state: str
    threads: int | None
    seedings: tuple[Seeding, ...]
    saved: tuple[str, ...]
    files: tuple[tuple[str, str], ...]
    series: tuple[Series, ...]


class FailureCode(StrEnum):
    """Why a run did not finish."""

    SAID = "said"
    """The text is its failure, or the last line of its standard error."""
    SILENT = "silent"
    """It failed without a message."""
    INCOMPLETE = "incomplete"
    """It ended with status 0, but its record is incomplete."""
    UNREADABLE = "unreadable"
    """Its values cannot be read; the text is the error."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A run that did not finish.

    Args:
        seed: of the run.
        status: its exit status, 128 + N after signal N.
        code: why.
        text: what belongs to the code.
        log: path of its standard error.
        steps: step boundaries before it failed.
    """

    seed: int
    status: int
    code: FailureCode
    text: str = ""
    log: str = ""
    steps: int = 0


@dataclass(frozen=True, slots=True)
class Configuration:
    """One command with several seeds.

    Args:
        command: the script or `-m module` and its arguments; secrets in it are masked.
        folder: of its saved runs.
        threads: value of `OMP_NUM_THREADS` in each run.
        runs: those that finished, in the order of the seeds.
        failures: those that did not.
        reused: seeds that had finished before and were not run again.
        changed: source files because of which seeds that had finished were run again.
        not_run: seeds that were not started as the first ones failed before any step, or that had not ended
            when the user ended it.
        seconds: from the first start to the last end.
        interrupted: whether the user ended it.
    """

    command: tuple[str, ...]
    folder: str
    threads: int
    runs: tuple[SeedRun, ...]
    failures: tuple[Failure, ...] = ()
    reused: tuple[int, ...] = ()
    changed: tuple[str, ...] = ()
    not_run: tuple[int, ...] = ()
    seconds: float = 0.0
    interrupted: bool = False


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric that every finished run of a spread has.

    Args:
        name: of its series.
        source: of its series.
        values: how many values the runs have: the least and the most.
        bookkeeping: whether it describes the run and not its result (`lr`, `time`).
        quality: whether its name stands for the quality of a result.
        varies: whether its last value differs between runs.
    """

    name: str
    source: str
    values: tuple[int, int]
    bookkeeping: bool
    quality: bool
    varies: bool


@dataclass(frozen=True, slots=True)
class Band:
    """The median and range of several curves, at positions where all have a value.

    Args:
        x: positions.
        median: at each position.
        low: the 10 % quantile, or the least of fewer than 10 curves.
        high: the 90 % quantile, or the greatest.
        label: the meaning of low and high, such as `10-90 %`.
    """

    x: tuple[float, ...]
    median: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    label: str


@dataclass(frozen=True, slots=True)
class Estimate:
    """The estimate from the final values of several runs.

    Args:
        n: number of finite values.
        mean: of them.
        sd: standard deviation with n - 1.
        interval: the 95 % t interval of the mean; None without scipy, or for fewer than two values.
        least: the smallest value.
        most: the greatest.
        gap: the median distance between two of the values.
        left_out: seeds whose value was NaN or infinite.
    """

    n: int
    mean: float
    sd: float
    interval: tuple[float, float] | None
    least: float
    most: float
    gap: float
    left_out: tuple[int, ...] = ()


class ContrastReason(StrEnum):
    """Why two configurations differ beyond seed noise, or not, or why that cannot be told."""

    NO_SCIPY = "no-scipy"
    """scipy is not installed."""
    NO_EFFECT = "no-effect"
    """In one of them, every seed gave the same bits."""
    TOO_FEW = "too-few"
    """They have too few seeds for any test."""
    SAME_VALUES = "same-values"
    """Every seed gave the same value in both."""
    BOTH_TESTS = "both-tests"
    """Both tests have a small p."""
    ONE_TEST = "one-test"
    """One test has a small p, the other has not."""
    NO_TEST = "no-test"
    """No test has a small p."""


@dataclass(frozen=True, slots=True)
class Contrast:
    """Two configurations: the second minus the first.

    Args:
        verdict: `yes`, `no` or `cannot tell`: do they differ beyond seed noise?
        reason: why.
        n: seeds that both have if `paired`, else those of each.
        paired: whether values of the same seed were compared.
        difference: mean of the second minus mean of the first.
        interval: its 95 % interval.
        t_p: p of the paired t test, or of Welch's.
        permutation_p: p of the permutation test.
        welch_p: p of Welch's test, which does not use that the seeds are the same.
        opposite: of all pairs of one run of each with different seeds, the share whose difference has not the
            sign of `difference`.
    """

    verdict: str
    reason: ContrastReason
    n: tuple[int, int]
    paired: bool
    difference: float | None = None
    interval: tuple[float, float] | None = None
    t_p: float | None = None
    permutation_p: float | None = None
    welch_p: float | None = None
    opposite: float | None = None


@dataclass(frozen=True, slots=True)
class Measured:
    """The chosen metric in one configuration.

    Args:
        configuration: the runs.
        curves: the series of each finished run, parallel to its `runs`.
        finals: final value by seed.
        estimate: None when no value is finite.
        band: None for fewer than two curves, or when they share no position.
        same_bits: whether all runs ended in the same bits, so that their spread says nothing.
    """

    configuration: Configuration
    curves: tuple[Series, ...]
    finals: dict[int, float]
    estimate: Estimate | None
    band: Band | None
    same_bits: bool = False


@dataclass(frozen=True, slots=True)
class Spread:
    """The result of a spread.

    Args:
        metric: the chosen one.
        metrics: those that every run has.
        last: how many values at the end are averaged to the final value.
        measured: one or two configurations.
        contrast: None for one configuration.
        notes: facts that the user must know to read the numbers.
        plots: paths of the plots.
    """

    metric: Metric
    metrics: tuple[Metric, ...]
    last: int
    measured: tuple[Measured, ...]
    contrast: Contrast | None = None
    notes: tuple[Remark, ...] = ()
    plots: tuple[str, ...] = field(default=())
