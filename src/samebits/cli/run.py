"""`samebits run`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from samebits.cli.command import description
from samebits.cli.options import (
    add_control_options,
    add_intervention_options,
    chosen_interventions,
    control_of,
    control_variables,
)
from samebits.cli.script_parser import ScriptParser, whole_number
from samebits.cli.terminal import write
from samebits.environment.distributed import rank_facts
from samebits.errors import SamebitsError
from samebits.interventions.plan import combine
from samebits.recording.closing import ending_text
from samebits.recording.launch import Launch, launch, replace_process
from samebits.recording.naming import DEFAULT_FOLDER, SUFFIX, next_free, target_name
from samebits.recording.settings import RecordingSettings
from samebits.records.kinds import Level
from samebits.switches.table import holds_layout
from samebits.verification.preconditions import check_named, check_target, check_writable, refuse_missing
from samebits.verification.rank_records import given_rank_record, rank_record

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from samebits.environment.distributed import RankFacts


class RunCommand:
    """Run a script once and keep a record of it.

    The script behaves as under plain `python`: it has the same output, exit status and bits. Compare two
    records with `samebits compare`, or let `samebits verify` make both runs.

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
        add_intervention_options(parser)
        parser.add_argument(
            "--record",
            metavar="PATH",
            help="the record (default: .samebits/SCRIPT-N.sbr), or in a distributed run the folder for the "
            "records of all ranks (default: .samebits/SCRIPT-N.ranks)",
        )
        parser.add_argument("--force", action="store_true", help="overwrite the record if it exists")
        return parser.parse_command(arguments)

    def run(self, options: argparse.Namespace) -> int:
        """Run the script, and return its exit status."""
        check_target(options.target)
        control, interventions, ranks = control_of(options), chosen_interventions(options), rank_facts()
        record = self._record(options, ranks)
        check_writable(record)
        in_place = options.own_process and os.name == "posix"
        settings = RecordingSettings(
            record=str(record),
            shown_as=str(record) if in_place else "",
            level=Level(options.level),
            max_steps=options.steps,
            progress=wants_progress(options),
            overwrite=options.force,
            no_arguments=options.no_arguments,
            control=control,
            interventions=interventions,
            ranks=ranks,
        )
        variables = control_variables(control)
        plan = combine(interventions, control, {**os.environ, **variables})
        fixed = plan.fixed_layout or holds_layout(control)
        environment = {**variables, **plan.environment}
        request = Launch(options.target, settings.to_json(), environment, fixed_layout=fixed)
        if in_place:
            replace_process(request)
        outcome = launch(request)
        write(f"samebits: {ending_text(record, str(record))}", sys.stderr)
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
        check_named(record)
        if record.exists() and not options.force:
            message = f"{record} exists and is not overwritten; give --force, or another --record"
            raise SamebitsError(message, slug="record-exists")
        return record


def add_recording_options(parser: ScriptParser) -> None:
    """Add the options that `run` and `verify` share."""
    parser.add_argument(
        "--level",
        choices=("step", "op"),
        default="step",
        help="record only steps, or also every operation (default: step)",
    )
    parser.add_argument("--steps", type=whole_number(1), metavar="N", help="stop the script after N steps")
    add_privacy_option(parser)
    parser.add_argument(
        "--no-progress", action="store_true", help="do not show progress in the last row of the terminal"
    )


def add_privacy_option(parser: ScriptParser) -> None:
    """Add the option of all commands that write records."""
    parser.add_argument(
        "--no-arguments",
        action="store_true",
        help="record none of the script's arguments (known kinds of secrets are always masked)",
    )


def kept_folder(name: str) -> Path:
    """Return the folder of `--keep`, which may not be there yet.

    Raises:
        SamebitsError: the name is empty (`usage`); it is a file, or its parent folder does not exist
            (`record-unwritable`).
    """
    if not name:
        raise SamebitsError("--keep is empty; expected the path of a folder", slug="usage")
    folder = Path(name)
    refuse_missing(folder.absolute().parent)
    if os.path.lexists(folder) and not folder.is_dir():
        message = f"--keep {name} is not a folder; expected the path of a folder, which need not exist yet"
        raise SamebitsError(message, slug="record-unwritable")
    return folder


def wants_progress(options: argparse.Namespace) -> bool:
    """Tell whether to show a live line: only on a terminal."""
    return not options.no_progress and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
