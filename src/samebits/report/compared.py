"""`samebits.compare`: it compares two records from Python, and its result prints the command's report."""

from __future__ import annotations

import html
import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from samebits.report import json as json_report
from samebits.report import text
from samebits.report.notes import sentences
from samebits.report.reasons import sentence_or_none
from samebits.report.style import Style
from samebits.verification import verify_records

if TYPE_CHECKING:
    from pathlib import Path

    from samebits.comparison.results import Comparison, Verdict

_HTML_COLOURS = {"identical": "#1a7f37", "different": "#cf222e", "not_judged": "#9a6700"}


@dataclass(frozen=True, repr=False)
class ComparedRecords:
    """The result of `compare`. It prints as `samebits compare` does; a notebook shows the verdict in colour.

    `verdict`, `reason` and `notes` are texts. `to_dict()` has everything else, as plain values: each finding
    with its line, cause, evidence and remedy.

    Args:
        comparison: the verdict and the findings as values; these may change without notice.
        report: the text that it prints.
    """

    comparison: Comparison
    report: str

    @property
    def verdict(self) -> Verdict:
        """The verdict: `identical`, `different` or `not_judged`."""
        return self.comparison.verdict

    @property
    def identical(self) -> bool:
        """True if the runs gave the same bits; False where that could not be judged."""
        return self.comparison.identical

    @property
    def reason(self) -> str | None:
        """The reason why the runs differ or could not be judged; None when they are identical."""
        return sentence_or_none(self.comparison.reason)

    @property
    def steps(self) -> int:
        """The number of steps that were compared."""
        return self.comparison.steps

    @property
    def first_step(self) -> int | None:
        """The first step with a difference; None without one."""
        return self.comparison.first_step

    @property
    def notes(self) -> tuple[str, ...]:
        """The notes of the report, one sentence each."""
        return tuple(sentences(self.comparison.notes))

    def to_dict(self) -> dict[str, Any]:
        """Return the object that `samebits compare --json` prints, with the findings and their evidence."""
        return cast("dict[str, Any]", json.loads(json_report.render(self.comparison)))

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
    `print(result)` shows what `samebits compare` shows; `result.identical` is the verdict as a bool, and
    `result.to_dict()` is what `samebits compare --json` prints.

    Args:
        a: path of the first record.
        b: path of the second.

    Raises:
        SamebitsError: a file is missing, is no record, or is damaged.
    """
    result = verify_records(os.fspath(a), os.fspath(b))
    return ComparedRecords(result.comparison, text.render(result, Style(), os.getcwd()))
