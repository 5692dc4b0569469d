"""`samebits portable-ops`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from samebits.cli.command import help_texts
from samebits.cli.script_parser import CommandParser
from samebits.cli.terminal import style_of, write
from samebits.errors import EXIT_IDENTICAL, SamebitsError
from samebits.report import portable_ops as report

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence


class PortableOpsCommand:
    """List the ops of torch that portable mode covers.

    Portable mode refuses an op that is not listed, unless torch breaks it down into listed ones first, as it
    does with most of torch.nn.functional. In-place variants and `out` variants are not listed.

    If words are given, only ops whose name contains one of them are listed. Exit status: 0, or 2 if there is
    no such op.

    Examples:
      samebits portable-ops
      samebits portable-ops softmax conv
      samebits portable-ops --json
    """

    name = "portable-ops"
    has_json_errors = False

    def parser(self) -> CommandParser:
        """Return the parser of the words that follow `portable-ops`."""
        parser = CommandParser(**help_texts(self))
        parser.add_argument("words", nargs="*", metavar="WORD", help="list only ops whose name contains WORD")
        parser.add_argument("--json", action="store_true", help="print one JSON object")
        return parser

    def parse(self, arguments: Sequence[str]) -> argparse.Namespace:
        """Read the words that follow `portable-ops`."""
        return self.parser().parse_args(list(arguments))

    def run(self, options: argparse.Namespace) -> int:
        """Print the list."""
        from samebits.portable.coverage import covered_ops

        words = [word.lower() for word in options.words]
        ops = [op for op in covered_ops() if not words or any(word in op.name.lower() for word in words)]
        if not ops:
            message = (
                f"portable mode covers no op whose name contains {' or '.join(map(repr, options.words))}"
            )
            raise SamebitsError(f"{message}; `samebits portable-ops` lists all that it covers", slug="usage")
        text = report.render_json(ops) if options.json else report.render_text(ops, style_of(sys.stdout))
        write(text, sys.stdout)
        return EXIT_IDENTICAL
