"""`samebits check`."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from samebits.cli.command import help_texts, refuse_rank
from samebits.cli.options import add_state_only, planned_launch, wants_progress
from samebits.cli.output import FirstAnswer, print_result
from samebits.cli.script_parser import CommandParser
from samebits.cli.terminal import style_of, write
from samebits.commands.rerun import repeated_settings, repeated_target
from samebits.comparison.environments import compare_environments
from samebits.errors import SamebitsError
from samebits.recording.closing import ending_text
from samebits.recording.launch import launch
from samebits.recording.naming import DEFAULT_FOLDER, SUFFIX, next_free, target_name
from samebits.records.reader import RecordReader
from samebits.report import environments as report
from samebits.verification import verify_records
from samebits.verification.preconditions import check_target, check_writable

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from samebits.recording.runner import Target
    from samebits.records.events import RunInfo
    from samebits.verification import Verification

_SHOWN = 3  # differences between the environments


class CheckCommand:
    """Run the command of a record again here, and compare: does it give the same bits?

    The run has the seed, the switches and the mode of the recorded one. Where the bits differ, the
    differences between the two environments are named, the likeliest first. Exit status: 0 identical,
    1 different, 2 could not judge.

    Examples:
      samebits check golden.sbr
      samebits check --json golden.sbr
      samebits check golden.sbr -- --token X    # arguments that the record does not hold
    """

    name = "check"
    has_json_errors = True

    def parse(self, arguments: Sequence[str]) -> argparse.Namespace:
        """Read the words that follow `check`."""
        parser = CommandParser(**help_texts(self))
        parser.add_argument("golden", metavar="RECORD", help="the record of a run")
        parser.add_argument(
            "--record", metavar="PATH", help="where the record of the new run goes (default: in .samebits)"
        )
        parser.add_argument("--verbose", action="store_true", help="show all evidence and all notes")
        parser.add_argument("--json", action="store_true", help="print one JSON object")
        parser.add_argument(
            "--no-progress", action="store_true", help="do not show progress in the last row of the terminal"
        )
        add_state_only(parser)
        words = list(arguments)
        split = words.index("--") if "--" in words else len(words)
        options = parser.parse_args(words[:split])
        options.given = tuple(words[split + 1 :]) if split < len(words) else None
        return options

    def run(self, options: argparse.Namespace) -> int:
        """Run the command again, and print the verdict."""
        refuse_rank(self.name)
        with RecordReader(options.golden) as reader:
            recorded = reader.info
        fresh = self._run_again(options, recorded)
        result = verify_records(options.golden, str(fresh))
        told = None if options.json else FirstAnswer(style_of(sys.stdout), os.getcwd())
        status = print_result(result, told, verbose=options.verbose, state_only=options.state_only)
        if told is not None and result.comparison.verdict == "different":
            write(_environments(options.golden, recorded, fresh, result), sys.stdout)
        return status

    @staticmethod
    def _run_again(options: argparse.Namespace, recorded: RunInfo) -> Path:
        """Run the recorded command, and return the path of its record."""
        target = repeated_target(recorded, options.given)
        check_target(target)
        record = _free_record(options, target)
        check_writable(record)
        settings = repeated_settings(recorded, str(record), progress=wants_progress(options))
        request = planned_launch(target, settings)
        launch(replace(request, output="stderr") if options.json else request)
        write(f"samebits: {ending_text(record, str(record))}", sys.stderr)
        return record


def _free_record(options: argparse.Namespace, target: Target) -> Path:
    if options.record is None:
        return next_free(DEFAULT_FOLDER, f"{target_name(target)}-check", SUFFIX)
    record = Path(options.record)
    if record.exists():
        raise SamebitsError(
            f"{record} exists and is not overwritten; give another --record", slug="record-exists"
        )
    return record


def _environments(golden: str, recorded: RunInfo, fresh: Path, result: Verification) -> str:
    """Return the first differences between the environments, for below the verdict."""
    with RecordReader(fresh) as reader:
        here = reader.info
    findings = result.comparison.findings
    comparison = compare_environments(recorded, here, (findings[0].origin.op or "") if findings else "")
    return "\n" + report.render_text((golden, str(fresh)), comparison, style_of(sys.stdout), most=_SHOWN)
