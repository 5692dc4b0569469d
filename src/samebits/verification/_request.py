"""The request for a verification."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from samebits.records.kinds import Level

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from samebits.recording.runner import Target
    from samebits.switches.switch import Control


@dataclass(frozen=True)
class VerifyRequest:
    """One question: does this script give the same bits each time?

    Args:
        target: the script or module and its arguments.
        folder: where the records go.
        runs: how many runs are compared, at least 2.
        steps: stop each run after this many steps.
        level: `op` records every operation already in the first runs.
        stress: perturb what must not matter, differently in each run.
        full: let the later runs go to their end instead of stopping at the first difference.
        localise: on a difference, run again to find the operation.
        output: where the script's standard output goes: `inherit` or `stderr`.
        progress: let the runs show a live line.
        control: seeds and switches of every run; None leaves the script as it is.
        replay: how often each operation is executed again in one more run; 0 for no such run.
        environment: variables that every run has beside the user's own.
        interventions: names of the interventions that every run has (docs/reference/interventions.md).
        quick: end with the first answer: the verdict, the origin, and what the evidence says of the cause.
        intervene: on a difference, run with single sources pinned, to find which one removes it.
        fix: on a difference, look for a patch and try it.
        no_arguments: keep none of the script's arguments in the records.
        state_only: values that are only read out do not count; where nothing else differs, nothing is
            explained.
        keep_records: leave the records of all runs, not only of those that the report is about.
        fresh: run each time in a copy of the working folder.
        share: paths in that folder that become links to the originals.
        one_at_a_time: make no two runs at the same time, whatever resources are free.
        all_at_once: make all compared runs at the same time, and both of each further pair: an executor
            makes them elsewhere.
        budget: seconds for explaining a difference; None goes by the length of the first run.
    """

    target: Target
    folder: Path
    runs: int = 2
    steps: int | None = None
    level: Level = Level.STEP
    stress: bool = False
    full: bool = False
    localise: bool = True
    output: str = "inherit"
    progress: bool = False
    control: Control | None = None
    replay: int = 0
    environment: Mapping[str, str] = field(default_factory=dict)
    interventions: tuple[str, ...] = ()
    quick: bool = False
    intervene: bool = True
    fix: bool = False
    state_only: bool = False
    keep_records: bool = True
    fresh: bool = False
    share: tuple[str, ...] = ()
    budget: float | None = None
    no_arguments: bool = False
    one_at_a_time: bool = False
    all_at_once: bool = False
