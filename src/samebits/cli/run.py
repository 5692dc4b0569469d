"""`samebits run`."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from samebits.cli.command import description
from samebits.cli.control_options import add_control_options, control_of, control_variables
from samebits.cli.pin_options import add_pin_options, pins_of
from samebits.cli.script_parser import ScriptParser, whole_number
from samebits.determinism.pins.plan import combine
from samebits.environment.ranks import rank_facts
from samebits.errors import SamebitsError
from samebits.hooks.layout import fixed_layout
from samebits.recording.launch import Launch, launch
from samebits.recording.settings import RecordingSettings
from samebits.verification.naming import DEFAULT_FOLDER, SUFFIX, next_free, target_name
from samebits.verification.place import check_place, check_target, why_incomplete
from samebits.verification.rank_places import given_rank_record, rank_record
from samebits.verification.runs import close_record, steps_recorded

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from samebits.environment.ranks import RankFacts
    from samebits.recording.events import RunInfo
    from samebits.recording.launch import Outcome


class RunCommand:
    """Run a script once and keep a record of it.

    The script behaves as it does under plain `python`: its output, its exit status and its bits are its own.
    Compare two records with `samebits compare`, or let `samebits verify` do both runs.

    Examples:
      samebits run train.py --epochs 1
      samebits run --seed 3 train.py                # the same bits every time
      samebits run --record a.sbr -m mypackage.train
      samebits run --level op --steps 3 train.py    # every operation of 3 steps
      torchrun --nproc-per-node 2 -m samebits run train.py
    """

    name = "run"
    judges = False

    def parse(self, arguments: Sequence[str]) -> argparse.Namespace:
        """Read the words that follow `run`."""
        before, after = description(self)
        parser = ScriptParser(
            prog="samebits run",
            usage="samebits run [options] SCRIPT|-m MODULE [arguments of the script]",
            description=before,
            epilog=after,
        )
        add_recording_options(parser)
        add_control_options(parser)
        add_pin_options(parser)
        parser.add_argument(
            "--record",
            metavar="PATH",
            help="the record (default: .samebits/SCRIPT-N.sbr); in a distributed run the folder of the "
            "records of all ranks (default: .samebits/SCRIPT-N.ranks)",
        )
        parser.add_argument("--force", action="store_true", help="replace the record if it exists")
        return parser.parse_command(arguments)

    def run(self, options: argparse.Namespace) -> int:
        """Run the script; its status is ours."""
        check_target(options.target)
        control, pins, ranks = control_of(options), pins_of(options), rank_facts()
        record = self._record(options, ranks)
        check_place(record)
        settings = RecordingSettings(
            record=str(record),
            level=options.level,
            max_steps=options.steps,
            progress=wants_progress(options),
            overwrite=options.force,
            control=control,
            pins=pins,
            ranks=ranks,
        )
        variables = control_variables(control)
        plan = combine(pins, control, {**os.environ, **variables})
        with fixed_layout(fixed=plan.fixed_layout):
            outcome = launch(Launch(options.target, settings.to_json(), {**variables, **plan.environment}))
        info = close_record(record, outcome)
        print(f"samebits: {_ending(record, info, outcome)}", file=sys.stderr)
        if outcome.signal is not None:
            _end_as(outcome.signal)
        return outcome.status

    @staticmethod
    def _record(options: argparse.Namespace, ranks: RankFacts | None) -> Path:
        if ranks is not None and options.record is not None:
            return given_rank_record(ranks, Path(options.record), force=options.force)
        if ranks is not None:
            return rank_record(ranks, DEFAULT_FOLDER, target_name(options.target))
        if options.record is None:
            return next_free(DEFAULT_FOLDER, target_name(options.target), SUFFIX)
        record = Path(options.record)
        if record.exists() and not options.force:
            message = f"{record} exists and is not overwritten; give --force, or another --record"
            raise SamebitsError(message, slug="record-exists")
        return record


def add_recording_options(parser: ScriptParser) -> None:
    """The options that `run` and `verify` share."""
    parser.add_argument(
        "--level",
        choices=("step", "op"),
        default="step",
        help="record each step, or also every operation (default: step)",
    )
    parser.add_argument("--steps", type=whole_number(1), metavar="N", help="stop the script after N steps")
    parser.add_argument("--no-progress", action="store_true", help="no live line on a terminal")


def wants_progress(options: argparse.Namespace) -> bool:
    """Whether a live line is shown: only on a terminal."""
    return not options.no_progress and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


def _ending(record: Path, info: RunInfo | None, outcome: Outcome) -> str:
    """What came of the recording."""
    if info is None:
        return f"no record was written in {record}"
    if info.status == "running" and outcome.signal is None:
        return f"{record} is incomplete: {why_incomplete(record)}; what was written before can be read"
    if info.status == "running":
        return f"{record} ends where the run was killed"
    steps = steps_recorded(record, info)
    return f"{steps} step{'' if steps == 1 else 's'} recorded in {record}"


def _end_as(number: int) -> None:
    """End by the signal that ended the script, so that a shell sees what it would have seen."""
    sys.stdout.flush()
    sys.stderr.flush()
    if number in (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL):
        return  # our own death would leave a second core file; 128 + N says the same
    signal.signal(number, signal.SIG_DFL) if number not in (signal.SIGKILL, signal.SIGSTOP) else None
    os.kill(os.getpid(), number)
