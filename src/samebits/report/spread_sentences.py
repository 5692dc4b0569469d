"""The sentences of a spread: its remarks, why a run did not finish, why two configurations differ or not."""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING

from samebits.commands.spread.remarks import RemarkCode
from samebits.commands.spread.request import seeds_text
from samebits.commands.spread.summary import LEAST_EACH, LEAST_PAIRS, ContrastReason, FailureCode
from samebits.report.style import shown_path

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from samebits.commands.spread.remarks import Remark
    from samebits.commands.spread.summary import Contrast, Failure, Seeding, Spread

_MOST_NAMED = 3
NAMES = "AB"
"""Of the configurations."""
_NO_SCIPY = "scipy is not installed: no interval and no test (`pip install scipy`)"


def remark_sentences(spread: Spread) -> list[str]:
    """Return the remarks on a spread; with two configurations, each begins with the name of its own."""
    several = len(spread.measured) > 1
    return [
        f"{NAMES[remark.configuration]}: {sentence(remark)}"
        if several and remark.configuration is not None
        else sentence(remark)
        for remark in spread.notes
    ]


def sentence(remark: Remark) -> str:
    """Return a remark as a sentence without a full stop."""
    form = _REMARKS[remark.code]
    return form.format(*remark.arguments) if isinstance(form, str) else form(*remark.arguments)


def failure_sentence(failure: Failure) -> str:
    """Return why a run did not finish."""
    return _FAILURES[failure.code].format(failure.text)


def contrast_sentence(contrast: Contrast) -> str:
    """Return why two configurations differ beyond seed noise, or not, or why that cannot be told."""
    form = _CONTRASTS[contrast.reason]
    return form if isinstance(form, str) else form(contrast)


def _same_bits(*constant: Seeding) -> str:
    own = f"the script seeds itself with the same value in each run: {_places(constant)}"
    why = own if constant else "it draws from no generator that the seed reaches"
    advice = ". If it takes a seed, pass it on: --seed-argument --seed" if constant else ""
    return (
        f"every seed gave the same bits: {why}. So this does not show how much randomness matters to it"
        f"{advice}"
    )


def _constant_seedings(*constant: Seeding) -> str:
    where = _places(constant)
    return (
        f"the script seeds itself with the same value in each run: {where}. Later draws from that generator "
        "do not vary here"
    )


def _places(seedings: tuple[Seeding, ...]) -> str:
    return "; ".join(f"{each.call} at {shown_path(each.file)}:{each.line}" for each in seedings[:_MOST_NAMED])


def _shared_file(path: str) -> str:
    return (
        f"every run saved to {os.path.relpath(path)}: runs at the same time overwrite each other's file. Put "
        "{seed} into its name in the arguments, or use --jobs 1"
    )


def _changed_files(*paths: str) -> str:
    names = ", ".join(os.path.relpath(path) for path in paths[:_MOST_NAMED])
    return f"{names} changed since then, so seeds that had finished were run again"


def _too_few(contrast: Contrast) -> str:
    n, paired = contrast.n, contrast.paired
    least = f"{LEAST_PAIRS} seeds that both have" if paired else f"{LEAST_EACH} seeds of each"
    counts = f"n = {n[0]}" if n[0] == n[1] else f"n = {n[0]} and {n[1]}"
    return f"{counts}: too few for any test to reach p < 0.05; at least {least} are needed"


def _no_test(contrast: Contrast) -> str:
    low, high = contrast.interval or (math.nan, math.nan)
    largest = max(abs(low), abs(high))
    return f"no test shows a difference; one of up to {largest:.3g} is not excluded"


_REMARKS: Mapping[RemarkCode, str | Callable[..., str]] = {
    RemarkCode.SAME_BITS: _same_bits,
    RemarkCode.CONSTANT_SEEDINGS: _constant_seedings,
    RemarkCode.SHARED_FILE: _shared_file,
    RemarkCode.NUMBERS_OF_VALUES: (
        "the runs have different numbers of values, {} to {}: the median is drawn where all have one"
    ),
    RemarkCode.FEWER_VALUES: "a run has {} values, fewer than --last {}: all of them are averaged",
    RemarkCode.SAME_FINAL_VALUE: (
        "the final value is the same in every run: rounded, at its limit, or independent of the seed; "
        "another metric may say more (--list-metrics)"
    ),
    RemarkCode.NOT_FINITE: lambda *seeds: (
        f"the final value of seed {seeds_text(seeds)} is NaN or infinite: left out of mean and interval"
    ),
    RemarkCode.CHANGED_FILES: _changed_files,
    RemarkCode.SCRIPT_SETS_THREADS: (
        "the script sets different numbers of threads in the runs, which changes bits"
    ),
    RemarkCode.OTHER_THREADS: "the two used {} and {} threads for each run, which changes bits too",
    RemarkCode.NO_MATPLOTLIB: "matplotlib is not installed: no plot (`pip install matplotlib`)",
    RemarkCode.NO_SCIPY: _NO_SCIPY,
}
_FAILURES: Mapping[FailureCode, str] = {
    FailureCode.SAID: "{}",
    FailureCode.SILENT: "no message",
    FailureCode.INCOMPLETE: "its record is incomplete",
    FailureCode.UNREADABLE: "its values cannot be read: {}",
}
_CONTRASTS: Mapping[ContrastReason, str | Callable[[Contrast], str]] = {
    ContrastReason.NO_SCIPY: _NO_SCIPY,
    ContrastReason.NO_EFFECT: "the seed has no effect, see the note",
    ContrastReason.TOO_FEW: _too_few,
    ContrastReason.SAME_VALUES: "every seed gave the same value in both",
    ContrastReason.BOTH_TESTS: "both tests have p < 0.05",
    ContrastReason.ONE_TEST: "one test has p < 0.05 and the other does not; run more seeds",
    ContrastReason.NO_TEST: _no_test,
}
