"""Printing a verdict."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from samebits.cli.terminal import style_of, write
from samebits.errors import EXIT_DIFFERENT, EXIT_IDENTICAL, EXIT_NOT_JUDGED
from samebits.report import json as json_report
from samebits.report import ranks as rank_report
from samebits.report import text as text_report

if TYPE_CHECKING:
    from samebits.comparison.ranks import RankComparison
    from samebits.verification.rank_records import LaunchComparison, RankRecords
    from samebits.verification.results import Verification

_STATUS = {"identical": EXIT_IDENTICAL, "different": EXIT_DIFFERENT, "not_judged": EXIT_NOT_JUDGED}


def print_result(result: Verification, *, as_json: bool, verbose: bool = False) -> int:
    """Print the report on stdout.

    Returns:
        the exit status that goes with the verdict.
    """
    if as_json:
        write(json_report.render(result.comparison, result.fix), sys.stdout)
    else:
        text = text_report.render(result, style_of(sys.stdout), os.getcwd(), verbose=verbose)
        write(text, sys.stdout)
    return _STATUS[result.comparison.verdict]


def print_ranks(result: RankComparison, records: RankRecords, *, as_json: bool) -> int:
    """Print the verdict over the ranks of one run.

    Returns:
        the exit status that goes with it.
    """
    for name in records.foreign:
        write(f"samebits: {records.folder / name} is of another launch and was left out", sys.stderr)
    if as_json:
        write(rank_report.render_json(result), sys.stdout)
    else:
        write(rank_report.render(result, style_of(sys.stdout), os.getcwd()), sys.stdout)
    return _STATUS[result.comparison.verdict]


def print_launches(result: LaunchComparison, *, as_json: bool) -> int:
    """Print the verdict over two launches, and the report on the rank that parted first.

    Returns:
        the exit status that goes with it.
    """
    style, folder = style_of(sys.stdout), os.getcwd()
    if as_json:
        write(json_report.render(result.comparison), sys.stdout)
    else:
        write(rank_report.render_launches(result.comparison, tuple(result.ranks), style), sys.stdout)
        if result.first is not None:
            write("\n" + text_report.render(result.ranks[result.first], style, folder), sys.stdout)
    return _STATUS[result.comparison.verdict]
