"""`samebits compare`."""

from __future__ import annotations

import argparse
import math
import os
import sys
from typing import TYPE_CHECKING

from samebits.cli.command import help_texts
from samebits.cli.options import add_state_only
from samebits.cli.output import STATUS, FirstAnswer, print_launches, print_ranks, print_result
from samebits.cli.page_file import add_html, check_page, write_page
from samebits.cli.script_parser import CommandParser
from samebits.cli.terminal import style_of, write
from samebits.comparison.programs.judge_programs import judge_programs
from samebits.comparison.programs.outcome import Tolerance
from samebits.errors import SamebitsError
from samebits.records.reader import RecordReader
from samebits.report import programs as program_report
from samebits.report import programs_json
from samebits.verification import verify_records
from samebits.verification.rank_launches import verify_launches, verify_ranks

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from samebits.verification.results import Verification


class CompareCommand:
    """Compare two records bit for bit: of the same script, or of two programs.

    If both records hold every operation (`samebits run --level op`), the first operation that differed is
    named. Two folders of distributed runs are compared rank by rank. With --ranks, the ranks of one run are
    compared with each other. With --align, the records are of two programs that should compute the same:
    their tensors are matched by name, and the first that differs is named. Exit status: 0 identical, 1
    different, 2 could not judge.

    Examples:
      samebits compare a.sbr b.sbr
      samebits compare --json a.sbr b.sbr
      samebits compare .samebits/train-1.ranks .samebits/train-2.ranks
      samebits compare --ranks .samebits/train-1.ranks
      samebits compare --align names trainer.sbr engine.sbr
      samebits compare --align names --tolerance 4 eager.sbr compiled.sbr
      samebits compare --align names --html difference.html trainer.sbr engine.sbr
    """

    name = "compare"
    has_json_errors = True

    def parser(self) -> CommandParser:
        """Return the parser of the words that follow `compare`."""
        parser = CommandParser(**help_texts(self))
        parser.add_argument("first", metavar="A", help="a record, or the folder of a distributed run")
        parser.add_argument("second", metavar="B", nargs="?", help="the record or folder to compare it with")
        parser.add_argument(
            "--ranks",
            action="store_true",
            help="compare the ranks of folder A: replicas must be equal, and the data divided",
        )
        parser.add_argument(
            "--align",
            choices=("names", "shapes"),
            help="A and B are of two different programs: match tensors by the names of taps, modules and "
            "parameters; with `shapes`, match the others by contents, and by shapes in order",
        )
        parser.add_argument(
            "--tolerance",
            type=_tolerance,
            metavar="ULP",
            help="with --align: accept up to ULP units in the last place, or with `rel=X` a difference of up "
            "to X times the largest value of the tensor; the verdict says so",
        )
        parser.add_argument("--verbose", action="store_true", help="show all evidence and all notes")
        parser.add_argument("--json", action="store_true", help="print one JSON object")
        add_state_only(parser)
        add_html(parser)
        return parser

    def parse(self, arguments: Sequence[str]) -> argparse.Namespace:
        """Read the words that follow `compare`."""
        parser = self.parser()
        options = parser.parse_args(list(arguments))
        if options.ranks == (options.second is not None):
            parser.error("expected two records, or --ranks and one folder")
        if options.align is None and options.tolerance is not None:
            parser.error("--tolerance goes with --align: records of one script are compared bit for bit")
        if options.align is not None and (options.ranks or options.state_only):
            parser.error("--align goes with neither --ranks nor --state-only")
        if options.html is not None and options.ranks:
            parser.error("--html is for two records; with --ranks it has nothing to show")
        return options

    def run(self, options: argparse.Namespace) -> int:
        """Print the verdict, and write the page if one is wanted."""
        page = None if options.html is None else check_page(options.html)
        if options.align is not None:
            return _compare_programs(options, page)
        if options.ranks:
            return print_ranks(*verify_ranks(options.first), as_json=options.json)
        if os.path.isdir(options.first) and os.path.isdir(options.second):
            _refuse_page(page)
            launches = verify_launches(options.first, options.second)
            return print_launches(
                launches, as_json=options.json, verbose=options.verbose, state_only=options.state_only
            )
        result = verify_records(options.first, options.second)
        style = style_of(sys.stdout, state_only=options.state_only)
        told = None if options.json else FirstAnswer(style, os.getcwd())
        status = print_result(result, told, verbose=options.verbose, state_only=options.state_only)
        if page is not None:
            _write_page(result, page)
        return status


def _refuse_page(page: Path | None) -> None:
    """Refuse a page on folders.

    Raises:
        SamebitsError: `usage`.
    """
    if page is not None:
        message = "--html is for two records, and these are folders; give the records of one rank"
        raise SamebitsError(message, slug="usage")


def _write_page(result: Verification, page: Path) -> None:
    """Write the page that `samebits report` writes, too."""
    from samebits.commands.compared_facts import compared_facts
    from samebits.report.html.comparison_page import comparison_page

    write_page(comparison_page(result, compared_facts(result), os.getcwd()), page)


def _compare_programs(options: argparse.Namespace, page: Path | None) -> int:
    with RecordReader(options.first) as a, RecordReader(options.second) as b:
        result = judge_programs(a, b, by_shape=options.align == "shapes", tolerance=options.tolerance)
        infos = a.info, b.info
    if options.json:
        write(programs_json.render_json(result, options.align), sys.stdout)
    else:
        write(program_report.render_text(result, style_of(sys.stdout), os.getcwd()), sys.stdout)
    if page is not None:
        from samebits.report.html.programs_page import programs_page

        names = options.first, options.second
        write_page(programs_page(result, infos, names, os.getcwd()), page)
    return STATUS[result.verdict]


def _tolerance(text: str) -> Tolerance:
    """Parse `4`, units in the last place, or `rel=1e-5`."""
    if text.isascii() and text.isdigit():
        return Tolerance(ulp=int(text))
    prefix, _, rest = text.partition("=")
    try:
        value = float(rest) if prefix == "rel" else -1.0
    except ValueError:
        value = -1.0
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"expected a whole number of ULP, or rel=1e-5, found {text!r}")
    return Tolerance(relative=value)
