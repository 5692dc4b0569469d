"""Printing a verdict."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from samebits.cli.terminal import style_of, write
from samebits.errors import EXIT_DIFFERENT, EXIT_IDENTICAL, EXIT_NOT_JUDGED
from samebits.report import json as json_report
from samebits.report import text as text_report

if TYPE_CHECKING:
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
