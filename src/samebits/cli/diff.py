"""`samebits diff`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from samebits.cli.command import help_texts
from samebits.cli.script_parser import CommandParser
from samebits.cli.terminal import style_of, write
from samebits.commands.environment_here import environment_here
from samebits.comparison.environments import compare_environments
from samebits.errors import EXIT_DIFFERENT, EXIT_IDENTICAL
from samebits.records.reader import RecordReader
from samebits.report import environments as report

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from samebits.records.events import RunInfo

HERE = "here"


class DiffCommand:
    """Say which differences between two environments can change which results.

    The likeliest comes first: code, arguments and data, then settings and versions that were measured or are
    documented to change bits. Without B, a record is compared with this machine. Exit status: 0 nothing that
    can change bits, 1 something, 2 a record cannot be read.

    Examples:
      samebits diff a.sbr b.sbr
      samebits diff a.sbr                   # the run's environment and this one
      samebits diff --all --json a.sbr b.sbr
    """

    name = "diff"
    has_json_errors = False

    def parser(self) -> CommandParser:
        """Return the parser of the words that follow `diff`."""
        parser = CommandParser(**help_texts(self))
        parser.add_argument("first", metavar="A", help="a record")
        parser.add_argument("second", metavar="B", nargs="?", help="another record (default: this machine)")
        parser.add_argument("--all", action="store_true", help="list what changes no bits, too")
        parser.add_argument("--json", action="store_true", help="print one JSON object")
        return parser

    def parse(self, arguments: Sequence[str]) -> argparse.Namespace:
        """Read the words that follow `diff`."""
        return self.parser().parse_args(list(arguments))

    def run(self, options: argparse.Namespace) -> int:
        """Print the differences."""
        first = _info(options.first)
        second = environment_here(first) if options.second is None else _info(options.second)
        names = options.first, options.second or HERE
        comparison = compare_environments(first, second)
        style = style_of(sys.stdout)
        text = (
            report.render_json(names, comparison)
            if options.json
            else report.render_text(names, comparison, style, everything=options.all)
        )
        write(text, sys.stdout)
        return EXIT_DIFFERENT if comparison.differences else EXIT_IDENTICAL


def _info(path: str) -> RunInfo:
    with RecordReader(path) as reader:
        return reader.info
