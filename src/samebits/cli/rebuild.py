"""`samebits rebuild`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from samebits.cli.command import help_texts
from samebits.cli.script_parser import CommandParser
from samebits.cli.terminal import style_of, write
from samebits.commands.rebuild import rebuild
from samebits.records.reader import RecordReader
from samebits.report.rebuilt import render_text

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence


class RebuildCommand:
    """Write what is needed to make a recorded run again, here or elsewhere.

    It holds the record, the pinned packages, the variables, the code of the commit with the uncommitted
    changes, a Dockerfile, and `run.sh`, which installs the packages and checks the run bit for bit. Data is
    named, with its SHA-256, and not copied.

    Examples:
      samebits rebuild golden.sbr --into again
      samebits rebuild golden.sbr --into again --repository ~/src/project
    """

    name = "rebuild"
    has_json_errors = False

    def parser(self) -> CommandParser:
        """Return the parser of the words that follow `rebuild`."""
        parser = CommandParser(**help_texts(self))
        parser.add_argument("golden", metavar="RECORD", help="the record of a run")
        parser.add_argument("--into", metavar="DIR", required=True, help="a new or empty folder")
        parser.add_argument(
            "--repository",
            metavar="DIR",
            default=".",
            help="a clone of the repository that the run was in (default: the working folder)",
        )
        return parser

    def parse(self, arguments: Sequence[str]) -> argparse.Namespace:
        """Read the words that follow `rebuild`."""
        return self.parser().parse_args(list(arguments))

    def run(self, options: argparse.Namespace) -> int:
        """Write the folder, and say what is missing."""
        with RecordReader(options.golden) as reader:
            recorded = reader.info
        rebuilt = rebuild(Path(options.golden), recorded, Path(options.into), Path(options.repository))
        write(render_text(rebuilt, style_of(sys.stdout)), sys.stdout)
        return 0
