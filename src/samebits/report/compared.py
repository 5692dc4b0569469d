"""`samebits.compare`: it compares two records from Python, and its result prints the command's report."""

from __future__ import annotations

import dataclasses
import html
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from samebits.comparison.results import Comparison
from samebits.report import text
from samebits.report.style import Style
from samebits.verification import verify_records

if TYPE_CHECKING:
    from pathlib import Path

_HTML_COLOURS = {"identical": "#1a7f37", "different": "#cf222e", "not_judged": "#9a6700"}


@dataclass(frozen=True, repr=False)
class ComparedRecords(Comparison):
    """A comparison that prints as `samebits compare` shows it; in a notebook, with the verdict in colour.

    Args:
        report: what it prints.
    """

    report: str = ""

    def __str__(self) -> str:
        return self.report

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.report.partition(os.linesep)[0].strip()}>"

    def _repr_html_(self) -> str:
        """Return the report as HTML, for notebooks."""
        word = self.verdict.replace("_", " ")
        rest = html.escape(self.report.removeprefix(word))
        colour = _HTML_COLOURS[self.verdict]
        return f'<pre style="white-space: pre-wrap"><b style="color: {colour}">{word}</b>{rest}</pre>'


def compare(a: str | Path, b: str | Path) -> ComparedRecords:
    """Compare two records of the same script: the verdict, and the origin of a difference.

    The origin is an operation when both records are of level `op`, else the first event that differed.
    `print(result)` shows what `samebits compare` shows; `result.identical` is the verdict as a bool.

    Args:
        a: path of the first record.
        b: path of the second.

    Raises:
        SamebitsError: a file is missing, is no record, or is damaged.
    """
    result = verify_records(os.fspath(a), os.fspath(b))
    fields = {each.name: getattr(result.comparison, each.name) for each in dataclasses.fields(Comparison)}
    return ComparedRecords(**fields, report=text.render(result, Style(), os.getcwd()))
