"""`samebits report`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from samebits.cli.command import help_texts
from samebits.cli.page_file import check_page, write_page
from samebits.cli.script_parser import CommandParser
from samebits.commands.compared_facts import compared_facts
from samebits.comparison.course import course
from samebits.errors import EXIT_IDENTICAL, SamebitsError
from samebits.records.reader import RecordReader
from samebits.report.html.comparison_page import comparison_page
from samebits.report.html.record_page import record_page
from samebits.verification import verify_records

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from samebits.report.html.document import Page


class ReportCommand:
    """Write one HTML page about a record, or about two records compared.

    The page needs no network and runs no script, so it can be mailed, or attached to a paper. For two records
    it has the verdict, where the difference began and how it spread, and the source lines. For one record it
    has what each step changed, seeds, switches and the environment. `verify`, `spread` and `cost` write a
    page with --html. That of `verify` has values and the patch too, which records do not hold.
    Exit status: 0 the page was written, 2 it was not.

    Examples:
      samebits report .samebits/train-1.sbr
      samebits report a.sbr b.sbr --output difference.html
      samebits verify --fix --html report.html train.py
    """

    name = "report"
    has_json_errors = False

    def parser(self) -> CommandParser:
        """Return the parser of the words that follow `report`."""
        parser = CommandParser(**help_texts(self))
        parser.add_argument("first", metavar="A", help="a record")
        parser.add_argument("second", metavar="B", nargs="?", help="the record to compare it with")
        parser.add_argument(
            "--output", metavar="FILE", help="path of the page (default: A.html or A-and-B.html, here)"
        )
        return parser

    def parse(self, arguments: Sequence[str]) -> argparse.Namespace:
        """Read the words that follow `report`."""
        return self.parser().parse_args(list(arguments))

    def run(self, options: argparse.Namespace) -> int:
        """Write the page."""
        names = [name for name in (options.first, options.second) if name is not None]
        for name in names:
            _refuse_folder(name)
        file = check_page(_default(names) if options.output is None else options.output)
        write_page(_page(names), file)
        return EXIT_IDENTICAL


def _page(names: Sequence[str]) -> Page:
    folder = os.getcwd()
    if len(names) == 1:
        with RecordReader(names[0]) as record:
            return record_page(course(record), names[0], folder)
    result = verify_records(*names)
    return comparison_page(result, compared_facts(result), folder)


def _default(names: Sequence[str]) -> str:
    return f"{'-and-'.join(Path(name).stem for name in names)}.html"


def _refuse_folder(name: str) -> None:
    """Refuse a folder, and say which command is for it.

    Raises:
        SamebitsError: `usage`.
    """
    if os.path.isdir(name):
        message = (
            f"{name} is a folder; expected a record. If it is a finished spread, use `samebits spread {name} "
            "--html FILE`; if it has the ranks of a run, give the record of one of them"
        )
        raise SamebitsError(message, slug="usage")
