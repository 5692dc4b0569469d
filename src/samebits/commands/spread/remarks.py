"""Remarks on the runs of a spread: a code and its arguments. `report.spread_sentences` says them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from samebits._text.coded import Coded
from samebits._text.str_enum import StrEnum

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from samebits.commands.spread.summary import Configuration, Measured, Seeding, SeedRun


class RemarkCode(StrEnum):
    """The closed list of remarks, each with its arguments."""

    SAME_BITS = "same-bits"
    """The seedings with the same value in every run."""
    CONSTANT_SEEDINGS = "constant-seedings"
    """The seedings with the same value in every run."""
    SHARED_FILE = "shared-file"
    """Path of the file that every run saved to."""
    NUMBERS_OF_VALUES = "numbers-of-values"
    """The least and the most."""
    FEWER_VALUES = "fewer-values"
    """The least number of values, number of values to average."""
    SAME_FINAL_VALUE = "same-final-value"
    NOT_FINITE = "not-finite"
    """Seeds."""
    CHANGED_FILES = "changed-files"
    """Paths."""
    SCRIPT_SETS_THREADS = "script-sets-threads"
    OTHER_THREADS = "other-threads"
    """Number of threads of the first configuration, of the second."""
    NO_MATPLOTLIB = "no-matplotlib"
    NO_SCIPY = "no-scipy"


@dataclass(frozen=True, slots=True)
class Remark(Coded[RemarkCode]):
    """One remark.

    Args:
        configuration: number of the configuration that it is about; None if it is about all.
    """

    configuration: int | None = None


def constant_seedings(runs: Sequence[SeedRun]) -> tuple[Seeding, ...]:
    """Return the calls by which the script seeds a generator with the same value in every run."""
    if len(runs) < 2:
        return ()
    shared = set(runs[0].seedings).intersection(*(run.seedings for run in runs[1:]))
    return tuple(seeding for seeding in runs[0].seedings if seeding in shared)


def remarks(measured: Measured, last: int) -> tuple[Remark, ...]:
    """Return the remarks on one configuration.

    Args:
        measured: the configuration.
        last: how many values were asked to be averaged at the end.
    """
    return tuple(_remarks(measured, last))


def _remarks(measured: Measured, last: int) -> Iterator[Remark]:
    configuration = measured.configuration
    runs = configuration.runs
    constant = constant_seedings(runs)
    if measured.same_bits:
        yield Remark.of(RemarkCode.SAME_BITS, *constant)
    elif constant:
        yield Remark.of(RemarkCode.CONSTANT_SEEDINGS, *constant)
    shared = set(runs[0].saved).intersection(*(run.saved for run in runs[1:])) if len(runs) > 1 else set()
    if shared:
        yield Remark.of(RemarkCode.SHARED_FILE, min(shared))
    yield from _of_values(measured, last)
    if configuration.changed:
        yield Remark.of(RemarkCode.CHANGED_FILES, *configuration.changed)
    if len({run.threads for run in runs}) > 1:
        yield Remark.of(RemarkCode.SCRIPT_SETS_THREADS)


def _of_values(measured: Measured, last: int) -> Iterator[Remark]:
    lengths = [len(curve.values) for curve in measured.curves]
    least, most = min(lengths), max(lengths)
    if least != most:
        yield Remark.of(RemarkCode.NUMBERS_OF_VALUES, least, most)
    if least < last:
        yield Remark.of(RemarkCode.FEWER_VALUES, least, last)
    if len(measured.finals) > 1 and len(set(measured.finals.values())) == 1 and not measured.same_bits:
        yield Remark.of(RemarkCode.SAME_FINAL_VALUE)
    estimate = measured.estimate
    left_out = tuple(measured.finals) if estimate is None else estimate.left_out
    if left_out:
        yield Remark.of(RemarkCode.NOT_FINITE, *left_out)


def comparability(first: Configuration, second: Configuration) -> tuple[Remark, ...]:
    """Return what makes the comparison of two configurations unfair."""
    if first.threads != second.threads:
        return (Remark.of(RemarkCode.OTHER_THREADS, first.threads, second.threads),)
    return ()
