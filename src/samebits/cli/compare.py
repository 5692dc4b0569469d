"""`samebits compare`."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from samebits.cli.command import help_texts
from samebits.cli.options import add_state_only
from samebits.cli.output import FirstAnswer, print_launches, print_ranks, print_result
from samebits.cli.script_parser import CommandParser
from samebits.cli.terminal import style_of
from samebits.verification import verify_records
from samebits.verification.rank_launches import verify_launches, verify_ranks

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence


class CompareCommand:
    """Compare two records of the same script, bit for bit.

    If both records hold every operation (`samebits run --level op`), the first operation that differed is
    named. Two folders of distributed runs are compared rank by rank. With --ranks, the ranks of one run are
    compared with each other. Exit status: 0 identical, 1 different, 2 could not judge.

    Examples:
      samebits compare a.sbr b.sbr
      samebits compare --json a.sbr b.sbr
      samebits compare .samebits/train-1.ranks .samebits/train-2.ranks
      samebits compare --ranks .samebits/train-1.ranks
    """

    name = "compare"
    has_json_errors = True

    def parse(self, arguments: Sequence[str]) -> argparse.Namespace:
        """Read the words that follow `compare`."""
        parser = CommandParser(**help_texts(self))
        parser.add_argument("first", metavar="A", help="a record, or the folder of a distributed run")
        parser.add_argument("second", metavar="B", nargs="?", help="the record or folder to compare it with")
        parser.add_argument(
            "--ranks",
            action="store_true",
            help="compare the ranks of folder A: replicas must be equal, and the data divided",
        )
        parser.add_argument("--verbose", action="store_true", help="show all evidence and all notes")
        parser.add_argument("--json", action="store_true", help="print one JSON object")
        add_state_only(parser)
        options = parser.parse_args(list(arguments))
        if options.ranks == (options.second is not None):
            parser.error("expected two records, or --ranks and one folder")
        return options

    def run(self, options: argparse.Namespace) -> int:
        """Print the verdict."""
        if options.ranks:
            return print_ranks(*verify_ranks(options.first), as_json=options.json)
        if os.path.isdir(options.first) and os.path.isdir(options.second):
            launches = verify_launches(options.first, options.second)
            return print_launches(
                launches, as_json=options.json, verbose=options.verbose, state_only=options.state_only
            )
        result = verify_records(options.first, options.second)
        told = None if options.json else FirstAnswer(style_of(sys.stdout), os.getcwd())
        return print_result(result, told, verbose=options.verbose, state_only=options.state_only)
