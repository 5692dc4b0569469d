"""Print a verdict."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from samebits.cli import internal_error
from samebits.cli.terminal import style_of, write
from samebits.errors import EXIT_DIFFERENT, EXIT_IDENTICAL, EXIT_NOT_JUDGED
from samebits.report import json as json_report
from samebits.report import ranks as rank_report
from samebits.report import text as text_report

if TYPE_CHECKING:
    from samebits.comparison.ranks import RankComparison
    from samebits.comparison.results import Comparison
    from samebits.report.style import Style
    from samebits.report.text import Block
    from samebits.verification.rank_launches import LaunchComparison
    from samebits.verification.rank_records import RankRecords
    from samebits.verification.results import Verification

STATUS = {"identical": EXIT_IDENTICAL, "different": EXIT_DIFFERENT, "not_judged": EXIT_NOT_JUDGED}
"""The exit status of each verdict."""


class FirstAnswer:
    """Prints what is known as soon as it is known, each block of the report once.

    Args:
        style: colour and width.
        folder: paths are shown relative to it.
    """

    def __init__(self, style: Style, folder: str) -> None:
        self._style = style
        self._folder = folder
        self._printed: list[Block] = []

    def tell(self, result: Verification) -> None:
        """Print the new parts of the first answer."""
        self._print(text_report.first_answer(result, self._style, self._folder))

    def finish(self, result: Verification, *, verbose: bool) -> None:
        """Print the rest of the report."""
        self._print(text_report.blocks(result, self._style, self._folder, verbose=verbose))

    def _print(self, blocks: list[Block]) -> None:
        text = text_report.joined(blocks, self._printed)
        if text:
            write(text, sys.stdout)
            sys.stdout.flush()
        self._printed += blocks


def print_result(
    result: Verification, told: FirstAnswer | None, *, verbose: bool = False, state_only: bool = False
) -> int:
    """Print the report on stdout.

    Args:
        result: what was found.
        told: has printed the first answer; None prints one JSON object.
        verbose: also all evidence, and every run.
        state_only: values that are only read out do not count for the status.

    Returns:
        the exit status that goes with the verdict.
    """
    if told is None:
        write(json_report.render(result.comparison, result.fix), sys.stdout)
    else:
        told.finish(result, verbose=verbose)
    return _status(result.comparison, state_only=state_only)


def print_ranks(result: RankComparison, records: RankRecords, *, as_json: bool) -> int:
    """Print the verdict over the ranks of one run.

    Returns:
        the exit status that goes with it.
    """
    for name in records.foreign:
        write(f"samebits: {records.folder / name} belongs to another launch and was left out", sys.stderr)
    if as_json:
        write(rank_report.render_json(result), sys.stdout)
    else:
        write(rank_report.render(result, style_of(sys.stdout), os.getcwd()), sys.stdout)
    return STATUS[result.comparison.verdict]


def print_launches(
    result: LaunchComparison, *, as_json: bool, verbose: bool = False, state_only: bool = False
) -> int:
    """Print the verdict over two launches, and the report on the rank that differed first.

    Returns:
        the exit status that goes with it.
    """
    style, folder = style_of(sys.stdout), os.getcwd()
    if as_json:
        write(json_report.render(result.comparison), sys.stdout)
    else:
        write(rank_report.render_launches(result.comparison, tuple(result.ranks), style), sys.stdout)
        if result.first is not None:
            write(
                "\n" + text_report.render(result.ranks[result.first], style, folder, verbose=verbose),
                sys.stdout,
            )
        write(rank_report.launch_rows(result, style, folder), sys.stdout)
    return _status(result.comparison, state_only=state_only)


def _status(comparison: Comparison, *, state_only: bool) -> int:
    """Return the exit status of a verdict, after reporting an error in explaining it."""
    if comparison.failure:
        return internal_error.report(comparison.failure)
    passed = state_only and comparison.state == "identical"
    return EXIT_IDENTICAL if passed else STATUS[comparison.verdict]
