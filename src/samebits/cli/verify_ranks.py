"""`samebits verify --nproc-per-node N`: several launches of a distributed script."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from samebits.cli.command import refuse_rank
from samebits.cli.options import chosen_interventions, control_of
from samebits.cli.output import print_launches
from samebits.cli.run import wants_progress
from samebits.cli.terminal import Phases
from samebits.errors import SamebitsError
from samebits.records.kinds import Level
from samebits.verification.rank_launches import LaunchRequest, verify_launch

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

_ONE_PROCESS = ("stress", "replay", "full", "fix", "apply", "verbose", "budget", "fresh", "quick")


def verify_ranks(options: argparse.Namespace, folder: Path) -> int:
    """Launch the script as often as it takes and print the verdict.

    Args:
        options: of `samebits verify`.
        folder: where the records go.

    Returns:
        the exit status.

    Raises:
        SamebitsError: an option that is for one process only; `usage`. What `verify_launch` raises.
    """
    refuse_rank("verify")
    for name in _ONE_PROCESS:
        if getattr(options, name):
            message = f"--{name} cannot be had with --nproc-per-node; leave one of them out"
            raise SamebitsError(message, slug="usage")
    control_of(options)  # what cannot be asked for is refused once, not by each rank
    live = wants_progress(options)
    request = LaunchRequest(
        target=options.target,
        folder=folder,
        ranks=options.nproc_per_node,
        runs=options.runs,
        steps=options.steps,
        level=Level(options.level),
        words=tuple(_words(options)),
        localise=not options.no_localise,
        output="stderr" if options.json else "inherit",
    )
    result = verify_launch(request, Phases(sys.stderr) if live else None)
    return print_launches(result, as_json=options.json, state_only=options.state_only)


def _words(options: argparse.Namespace) -> list[str]:
    """Control and interventions as options of `samebits run`."""
    words = [] if options.seed is None else ["--seed", str(options.seed)]
    words += ["--deterministic"] if options.deterministic else []
    words += ["--per-rank-seeds"] if options.per_rank_seeds else []
    words += ["--reseed"] if options.reseed else []
    words += ["--no-arguments"] if options.no_arguments else []
    words += ["--on-drift", options.on_drift] if options.on_drift else []
    for name, value in options.set:
        words += ["--set", f"{name}={value}"]
    for name in options.leave:
        words += ["--leave", name]
    for name in chosen_interventions(options):
        words += ["--pin", name]
    return words
