"""`samebits compare`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from samebits.cli.command import description
from samebits.cli.output import print_result
from samebits.cli.script_parser import CommandParser
from samebits.verification import verify_records

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence


class CompareCommand:
    """Compare two records of the same script, bit for bit.

    With two records that hold every operation (`samebits run --level op`), the first operation that differed
    is named. Exit status: 0 identical, 1 different, 2 could not judge.

    Examples:
      samebits compare a.sbr b.sbr
      samebits compare --json a.sbr b.sbr
    """

    name = "compare"
    judges = True

    def parse(self, arguments: Sequence[str]) -> argparse.Namespace:
        """Read the words that follow `compare`."""
        before, after = description(self)
        parser = CommandParser(prog="samebits compare", description=before, epilog=after)
        parser.add_argument("first", metavar="A")
        parser.add_argument("second", metavar="B")
        parser.add_argument("--json", action="store_true", help="print one JSON object")
        return parser.parse_args(list(arguments))

    def run(self, options: argparse.Namespace) -> int:
        """Print the verdict."""
        return print_result(verify_records(options.first, options.second), as_json=options.json)
