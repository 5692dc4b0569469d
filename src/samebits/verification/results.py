"""What a verification found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from samebits.comparison.results import Comparison
    from samebits.recording.events import RunInfo
    from samebits.verification.fix_results import Fix


@dataclass(frozen=True)
class ScriptRun:
    """One run of the script that samebits made.

    Args:
        purpose: `prepare` (it left files that the compared runs read), `compare`, `excuse` (again, without
            memory that nothing read), `localise`, `capture` (values kept, or put in place, at the origins),
            `again` (as the compared ones, to see the difference once more), `intervene` (something pinned),
            `fix` (with a patch that is tried), `replay` or `crowded` (at the same
            time as another, of which one failed: both were made again).
        record: path of its record.
        status: exit status as a shell would show it.
        seconds: how long it took.
        perturbation: what `--stress` changed, in words.
        info: what the record says of the run; None when it left no record.
        timed_out: whether it was ended at its limit of time.
        kept: whether its record is still there.
    """

    purpose: str
    record: str
    status: int
    seconds: float
    perturbation: tuple[str, ...] = ()
    info: RunInfo | None = None
    timed_out: bool = False
    kept: bool = True


@dataclass(frozen=True)
class Verification:
    """The verdict over all runs, and how it was reached.

    Args:
        comparison: verdict and findings.
        command: the script or `-m module` and its arguments.
        runs: every run of the script that was made, in order.
        seconds: of all of it; 0 when the records were there already.
        n_values: how many tensors of the first run were compared with another's.
        fix: the patch that was looked for, where it was asked for.
        interrupted: whether Ctrl-C ended what came after the verdict.
        localised: whether the operation was looked for.
        quick: whether nothing was to be proven of the cause.
    """

    comparison: Comparison
    command: tuple[str, ...]
    runs: tuple[ScriptRun, ...]
    seconds: float
    n_values: int = 0
    fix: Fix | None = None
    interrupted: bool = False
    localised: bool = False
    quick: bool = False

    @property
    def compared(self) -> tuple[ScriptRun, ...]:
        """The runs that the verdict is about."""
        return tuple(run for run in self.runs if run.purpose == "compare")
