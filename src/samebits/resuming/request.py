"""What is to be checked."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from samebits.determinism.control import Control
    from samebits.recording.runner import Target


@dataclass(frozen=True)
class ResumeRequest:
    """One question: does this script, killed and resumed, go on as if nothing had happened?

    Args:
        target: the script or module and its arguments; `{run}` in them is the run's own folder.
        resume_args: words that a resumed run has after those; `{newest:PATTERN}`, `{run}` and `{step}` in
            them are filled in (see `placeholders`).
        folder: where records, and while it lasts the copy of the working folder, go.
        source: the working folder that each run gets a copy of.
        share: paths in it that all runs use together, through a link, in place of a copy.
        kill_after: the numbers of steps after which runs are killed; empty to choose `kills` of them.
        kills: how many to draw at random; None for two that are chosen from the number of steps.
        steps: stop each run after this many steps.
        output: where the scripts' standard output goes: `inherit`, `stderr` or `nothing`.
        progress: let the runs show a live line.
        control: seeds and switches of every run; None leaves the script as it is.
        environment: variables that every run has beside the user's own.
        no_arguments: keep none of the script's arguments in the records.
        budget: seconds after which no further kill is begun; None for no end.
        most_bytes: the largest working folder that is copied.
    """

    target: Target
    resume_args: tuple[str, ...]
    folder: Path
    source: Path
    share: tuple[str, ...] = ()
    kill_after: tuple[int, ...] = ()
    kills: int | None = None
    steps: int | None = None
    output: str = "inherit"
    progress: bool = False
    control: Control | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    no_arguments: bool = False
    budget: float | None = None
    most_bytes: int = 2 << 30
