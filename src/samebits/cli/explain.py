"""`samebits explain`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from samebits.cli.command import did_you_mean, help_texts
from samebits.cli.script_parser import CommandParser
from samebits.cli.terminal import style_of, write
from samebits.errors import EXIT_IDENTICAL, SamebitsError
from samebits.report.messages import read_entries, render_entry, render_slugs

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence


class ExplainCommand:
    """Explain an error message, and say what to do.

    Each error message ends with a name. Without a name, all entries are listed.
    Exit status: 0, or 2 if there is no such entry.

    Examples:
      samebits explain record-version
      samebits explain
    """

    name = "explain"
    has_json_errors = False

    def parser(self) -> CommandParser:
        """Return the parser of the words that follow `explain`."""
        parser = CommandParser(**help_texts(self))
        parser.add_argument(
            "slug", nargs="?", metavar="NAME", help="the name at the end of the error message"
        )
        return parser

    def parse(self, arguments: Sequence[str]) -> argparse.Namespace:
        """Read the words that follow `explain`."""
        return self.parser().parse_args(list(arguments))

    def run(self, options: argparse.Namespace) -> int:
        """Print the entry."""
        entries, style = read_entries(), style_of(sys.stdout)
        if options.slug is None:
            write(render_slugs(entries, style), sys.stdout)
            return EXIT_IDENTICAL
        slug = options.slug.rpartition("#")[2]  # the link of an error may be pasted whole
        if slug not in entries:
            message = f"no message named {slug!r}{did_you_mean(slug, entries)}; `samebits explain` lists all"
            raise SamebitsError(message, slug="usage")
        write(render_entry(slug, entries[slug], style), sys.stdout)
        return EXIT_IDENTICAL
