"""`samebits check`."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from samebits.cli._lock_check import check_lock
from samebits.cli.command import help_texts, refuse_rank
from samebits.cli.defaults import pass_over
from samebits.cli.executor_options import add_executor_options, chosen_executor
from samebits.cli.left_behind import announce
from samebits.cli.options import add_state_only, planned_launch, wants_progress
from samebits.cli.output import FirstAnswer, print_result
from samebits.cli.script_parser import CommandParser
from samebits.cli.terminal import style_of, write
from samebits.commands.lock.file import DEFAULT
from samebits.commands.rerun import repeated_settings, repeated_target
from samebits.comparison.environments import compare_environments
from samebits.errors import SamebitsError
from samebits.executors.launching import launch_in_jobs
from samebits.recording.closing import ending_text
from samebits.recording.launch import launch
from samebits.recording.naming import DEFAULT_FOLDER, SUFFIX, next_free, target_name
from samebits.records.reader import RecordReader, is_record
from samebits.report import environments as report
from samebits.verification import verify_records
from samebits.verification.preconditions import check_target, check_writable

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from samebits.recording.runner import Target
    from samebits.records.events import RunInfo
    from samebits.verification import Verification

_OF_RECORD = ("--record", "--verbose")
_OF_LOCK = ("--update", "--quick", "--lock", "--junit", "--sarif")
_SHOWN = 3  # differences between the environments


class CheckCommand:
    """Run what was recorded or locked again here, and compare: does it give the same bits?

    Without a RECORD, the entries of `samebits.lock` are checked, or those that are named. Where the bits of
    one are others, it says whose that is: your change (the commit and the lines, tried by running the old
    code here), drift of the platform (the operation whose results changed, by how much, and the likeliest
    reasons), or nondeterminism.

    With the record of a run, its command is run again with its seed, its switches and its mode. Exit status:
    0 identical, 1 different, 2 could not judge.

    Examples:
      samebits check                              # all entries of samebits.lock
      samebits check train --junit report.xml
      samebits check --update train               # the new bits are wanted
      samebits check golden.sbr
      samebits check golden.sbr -- --token X      # arguments that the record does not hold
    """

    name = "check"
    has_json_errors = True

    def parser(self) -> CommandParser:
        """Return the parser of the words that follow `check`."""
        parser = CommandParser(**help_texts(self))
        parser.add_argument(
            "what", nargs="*", metavar="RECORD|ENTRY", help="the record of a run, or entries of the lock file"
        )
        parser.add_argument(
            "--record", metavar="PATH", help="where the record of the new run goes (default: in .samebits)"
        )
        parser.add_argument("--verbose", action="store_true", help="show all evidence and all notes")
        parser.add_argument("--json", action="store_true", help="print one JSON object")
        parser.add_argument(
            "--no-progress", action="store_true", help="do not show progress in the last row of the terminal"
        )
        add_state_only(parser)
        group = parser.add_argument_group("check of a lock file")
        group.add_argument("--lock", metavar="PATH", help=f"the lock file (default: {DEFAULT})")
        group.add_argument(
            "--update", action="store_true", help="write the entries again, as the code gives them now"
        )
        group.add_argument("--quick", action="store_true", help="do not find out whose a difference is")
        group.add_argument("--junit", metavar="FILE", help="write the results as JUnit XML")
        group.add_argument(
            "--sarif", metavar="FILE", help="write the results as SARIF, for the lines of the code"
        )
        add_executor_options(parser)
        return parser

    def parse(self, arguments: Sequence[str]) -> argparse.Namespace:
        """Read the words that follow `check`."""
        words = list(arguments)
        split = words.index("--") if "--" in words else len(words)
        options = self.parser().parse_args(words[:split])
        options.given = tuple(words[split + 1 :]) if split < len(words) else None
        pass_over(options, _OF_RECORD if _record_of(options) is None else _OF_LOCK)
        pass_over(options, ("--executor", "--executor-option") if options.update else ())
        return options

    def run(self, options: argparse.Namespace) -> int:
        """Run the command again, and print the verdict."""
        refuse_rank(self.name, options.executor)
        if _names_record(options):
            return self._check_record(options)
        return check_lock(options)

    def _check_record(self, options: argparse.Namespace) -> int:
        (options.golden,) = options.what
        with RecordReader(options.golden) as reader:
            recorded = reader.info
        fresh = self._run_again(options, recorded)
        result = verify_records(options.golden, str(fresh))
        style = style_of(sys.stdout, state_only=options.state_only)
        told = None if options.json else FirstAnswer(style, os.getcwd())
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
        announce(options, record.parent, record.name)
        settings = repeated_settings(recorded, str(record), progress=wants_progress(options))
        request = planned_launch(target, settings)
        request = replace(request, output="stderr") if options.json else request
        with chosen_executor(options) as executor:
            if executor is None:
                launch(request)
            else:
                launch_in_jobs(executor, [request])
        write(f"samebits: {ending_text(record, str(record))}", sys.stderr)
        return record


def _names_record(options: argparse.Namespace) -> bool:
    """Tell whether the words name a record, and refuse options that go with a lock file only.

    Raises:
        SamebitsError: `usage`.
    """
    record = _record_of(options)
    wrong = [name for name in (_OF_RECORD if record is None else _OF_LOCK) if getattr(options, name[2:])]
    wrong += ["arguments"] if record is None and options.given else []
    if wrong:
        what = "the entries of a lock file" if record is None else "a record"
        raise SamebitsError(f"{wrong[0]} does not go with {what}; leave it out", slug="usage")
    if record is not None and len(options.what) > 1:
        raise SamebitsError("expected one record, or names of entries of the lock file", slug="usage")
    return record is not None


def _record_of(options: argparse.Namespace) -> str | None:
    """Return the word that names a record, if any."""
    return next((word for word in options.what if word.endswith(SUFFIX) or is_record(word)), None)


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
