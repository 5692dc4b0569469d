"""`samebits run`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from samebits.cli.command import help_texts
from samebits.cli.left_behind import announce
from samebits.cli.options import (
    add_control_options,
    add_intervention_options,
    add_recording_options,
    chosen_interventions,
    control_of,
    planned_launch,
    wants_progress,
)
from samebits.cli.script_parser import ScriptParser
from samebits.cli.terminal import write
from samebits.environment.distributed import rank_facts
from samebits.errors import SamebitsError
from samebits.recording.closing import ending_text
from samebits.recording.launch import launch, replace_process
from samebits.recording.naming import DEFAULT_FOLDER, SUFFIX, next_free, target_name
from samebits.recording.settings import VALUE_BYTES, Inventory, RecordingSettings
from samebits.records.kinds import Level
from samebits.verification.preconditions import check_named, check_target, check_writable
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
    has_json_errors = False

    def parser(self) -> ScriptParser:
        """Return the parser of the words that follow `run`."""
        parser = ScriptParser(
            **help_texts(self),
            usage="samebits run [options] SCRIPT|-m MODULE [arguments of the script]",
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
        parser.add_argument(
            "--no-data",
            action="store_true",
            help="keep no digests of the data files that the script reads",
        )
        parser.add_argument(
            "--no-changes",
            action="store_true",
            help="do not keep what was changed since the commit (secrets of known kinds are always masked)",
        )
        parser.add_argument(
            "--tap-modules",
            metavar="PATTERN",
            action="append",
            default=[],
            help="record what the modules with such a path give, `*` for all, for `compare --align`; can be "
            "repeated",
        )
        parser.add_argument(
            "--values",
            action="store_true",
            help="keep the elements of batches, losses, gradients and parameters, for `compare --align`",
        )
        parser.add_argument("--force", action="store_true", help="overwrite the record if it exists")
        return parser

    def parse(self, arguments: Sequence[str]) -> argparse.Namespace:
        """Read the words that follow `run`."""
        return self.parser().parse_command(arguments)

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
            value_bytes=VALUE_BYTES,
            state_values=options.values,
            tap_modules=tuple(options.tap_modules),
            inventory=Inventory(
                not options.no_changes, not options.no_data and (ranks is None or not ranks.rank)
            ),
        )
        request = planned_launch(options.target, settings)
        if in_place:
            replace_process(request)
        announce(options, record.parent, record.name)
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
        if not options.record:
            message = "--record is empty; expected the path of a file"
            raise SamebitsError(message, slug="record-unwritable")
        record = Path(options.record)
        check_named(record)
        if record.exists() and not options.force:
            message = f"{record} exists and is not overwritten; give --force, or another --record"
            raise SamebitsError(message, slug="record-exists")
        return record
