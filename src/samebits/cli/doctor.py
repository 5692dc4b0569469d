"""`samebits doctor`."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from samebits.cli.command import help_texts
from samebits.cli.script_parser import ScriptParser
from samebits.cli.terminal import style_of, write
from samebits.commands.doctor.checks import examine
from samebits.commands.doctor.collect import collect
from samebits.commands.doctor.imports import imported_packages, is_parsed, own_modules, started_file
from samebits.commands.doctor.script_settings import settings_in
from samebits.commands.doctor.threat import BREAKS, PROMISES
from samebits.errors import EXIT_DIFFERENT, EXIT_IDENTICAL
from samebits.report import doctor as report
from samebits.verification.preconditions import check_target

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from samebits.commands.doctor.environment import EnvironmentSnapshot
    from samebits.recording.runner import Target


class DoctorCommand:
    """Check what on this machine can break reproducibility, and say what to do.

    There are four promises: repeatable, resumable, portable and proven. torch is imported in a fresh process;
    nothing is changed. If a script is given, it is read but not run, and only the packages that it imports
    are checked. Exit status: 0 nothing breaks a promise, 1 something does, 2 could not check.

    Examples:
      samebits doctor
      samebits doctor --promise repeatable --why
      samebits doctor --json train.py
    """

    name = "doctor"
    has_json_errors = True
    render_error = staticmethod(report.render_error)

    def parser(self) -> ScriptParser:
        """Return the parser of the words that follow `doctor`."""
        parser = ScriptParser(
            **help_texts(self),
            usage="samebits doctor [options] [SCRIPT|-m MODULE]",
        )
        parser.add_argument(
            "--promise",
            action="append",
            default=[],
            choices=PROMISES,
            metavar="NAME",
            help="check only this promise: repeatable, resumable, portable or proven (can be repeated)",
        )
        parser.add_argument("--why", action="store_true", help="also give reasons and sources")
        parser.add_argument(
            "--switches", action="store_true", help="show every switch, not only those that differ"
        )
        parser.add_argument("--json", action="store_true", help="print one JSON object")
        return parser

    def parse(self, arguments: Sequence[str]) -> argparse.Namespace:
        """Read the words that follow `doctor`."""
        return self.parser().parse_command(arguments, target_required=False)

    def run(self, options: argparse.Namespace) -> int:
        """Check, and print the threats."""
        snapshot = _collected(options.target)
        promises = tuple(options.promise or PROMISES)
        threats = examine(snapshot, promises)
        if options.json:
            write(report.render_json(snapshot, threats), sys.stdout)
        else:
            request = report.Request(promises, why=options.why, all_switches=options.switches)
            write(report.render_text(snapshot, threats, request, style_of(sys.stdout)), sys.stdout)
        return EXIT_DIFFERENT if any(threat.level == BREAKS for threat in threats) else EXIT_IDENTICAL


def _collected(target: Target | None) -> EnvironmentSnapshot:
    if target is None:
        return collect(Path.cwd())
    check_target(target)
    start, root = started_file(target.script, target.module, Path.cwd())
    if start is not None and not is_parsed(start):
        message = f"{start.name} is not Python source, so its imports are not known: every package is checked"
        write(f"samebits: {message}", sys.stderr)
        start = None
    if start is None:
        return collect(root)
    settings = settings_in(own_modules(start, root), root)
    return replace(collect(root, imported_packages(start, root)), settings=settings)
