"""Reasons of verdicts: a code and its arguments. `report.reasons` makes the sentences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from samebits._text.coded import Coded
from samebits._text.str_enum import StrEnum


class ReasonCode(StrEnum):
    """The closed list of reasons why runs differ or could not be judged, each with its arguments.

    An *ending* is a reason of the group "of how one run ended". A *script* is its name for messages.
    """

    # Of two records.
    OTHER_SCRIPTS = "other-scripts"
    """Two scripts, empty for none."""
    OTHER_ARGUMENTS = "other-arguments"
    """Two tuples of words."""
    STATE_DIFFERS = "state-differs"
    """Step, the first tensor as (role, name, its `TensorInfo`), number of tensors, identical steps before."""
    VALUE_DIFFERS = "value-differs"
    """Step, whether it was saved, whether the script trains, identical steps before, step from which the
    state differs too or None."""
    RETURNED_DIFFERS = "returned-differs"
    """Identical steps before the function returned."""
    OTHER_STEPS = "other-steps"
    """Two numbers of steps, for each run whether it was stopped and may have made more."""
    OTHER_VALUES = "other-values"
    """Kind, op, (file, line) or None, number that only the first run has, number that only the second has."""
    ONLY_REPORTED = "only-reported"
    """Number of values that are read out and differ, whether the script trains."""
    NOT_WHOLE = "not-whole"
    """Endings of one or both runs, number of steps that were compared."""
    BOTH_FAILED = "both-failed"
    """The failure of both, number of steps that were compared."""
    BOTH_KILLED = "both-killed"
    """Number of steps that were compared."""
    STATE_NOT_RECORDED = "state-not-recorded"
    """`first`, `second` or `both`; value of a `RecordedPart`; the error."""

    # Of how one run ended.
    RUN_FAILED = "run-failed"
    """`first` or `second`, exit status or None, its failure or empty."""
    RUN_EXITED = "run-exited"
    """`first` or `second`, exit status other than 0 with which it ended by itself."""
    RUN_NEVER_ENDED = "run-never-ended"
    """`first` or `second`, its failure or empty."""
    LEFT_NO_RECORD = "left-no-record"
    """Exit status."""
    TIMED_OUT = "timed-out"
    """Seconds."""
    SEEN_FAILURE = "seen-failure"
    """How it ended, as its parent saw it."""
    RECORD_INCOMPLETE = "record-incomplete"
    """Why."""
    FAILED_AT = "failed-at"
    """Its failure or empty, the step or 0, exit status."""

    # Of ranks.
    RANKS_DIVERGED = "ranks-diverged"
    """Names of tensors, ranks, ranks that diverge from them, step, whether before it."""
    NO_REPLICAS = "no-replicas"
    RANKS_INCOMPLETE = "ranks-incomplete"
    """Ranks without a record, ranks that were killed, those that failed as (rank, steps, failure)."""
    SAMPLES_MISSING = "samples-missing"
    """Loader, epoch, number of samples on no rank, of how many, a `SamplerConflict`."""
    SAMPLES_REPEATED = "samples-repeated"
    """Loader, epoch, number of samples that came more than once, a `SamplerConflict`."""
    OF_RANK = "of-rank"
    """Rank, the reason there."""
    OTHER_WORLD_SIZES = "other-world-sizes"
    """Two numbers of ranks."""
    RANK_WITHOUT_RECORD = "rank-without-record"
    """`first` or `second`, ranks."""

    # Of child processes.
    IN_CHILD = "in-child"
    """Name of the child, the reason there."""
    CHILD_WITHOUT_RECORD = "child-without-record"
    """Name of the child, `first` or `second`."""
    POOL_BY_CHANCE = "pool-by-chance"
    """Name of the child."""
    REPORTED_AND_DOUBT = "reported-and-doubt"
    """Number of reported values that differ, the reason why the rest is open."""

    # Of the runs of a verification.
    INTERRUPTED = "interrupted"
    """Number of runs that were compared, number of runs asked for."""
    BEFORE_RECORD = "before-record"
    """Script, exit status."""
    DID_NOT_END = "did-not-end"
    """Script, the ending, whether operations were recorded."""
    FAILED_BEFORE_TORCH = "failed-before-torch"
    """Script, its failure, exit status."""
    NO_TORCH = "no-torch"
    """Script."""
    NOTHING_COMPARED = "nothing-compared"
    """Script."""
    OTHER_STATUS = "other-status"
    """Two exit statuses."""
    OTHER_CODE = "other-code"
    """Script, names of code whose files were changed while the runs were made."""
    FAILED_IN_BOTH = "failed-in-both"
    """Script, endings (one if they are equal), whether operations were recorded."""
    FAILED_IN_ONE = "failed-in-one"
    """Script, number of the run, its ending, whether the other was stopped at a difference, whether
    operations were recorded."""

    # Of runs with a patch.
    WITH_PATCH = "with-patch"
    """The reason why the runs could not be judged; None if it is not known."""
    ENDS_EARLY = "ends-early"
    """Number of steps."""
    PATCH_TIMED_OUT = "patch-timed-out"
    """Seconds."""
    PATCH_FAILED = "patch-failed"
    """Failure of the script or empty, exit status."""
    PATCH_NOT_JUDGED = "patch-not-judged"
    STILL_DIFFERS = "still-differs"
    """Site or None, step or None."""
    NO_TIME_TO_TRY = "no-time-to-try"

    # Of a resume check. `after` is the number of steps before the kill, an end is an `Ending`.
    WHOLE_RUN_FAILED = "whole-run-failed"
    """Script, its end."""
    NO_OPTIMIZER_STEP = "no-optimizer-step"
    """Script."""
    KILL_NOT_REACHED = "kill-not-reached"
    """`after`, the end of the run that was to be killed."""
    KILLED_RUN_DIFFERS = "killed-run-differs"
    """The `FirstDifference` from the whole run, before the kill."""
    WHOLE_RUNS_DIFFER = "whole-runs-differ"
    """The `FirstDifference` of two whole runs."""
    NO_FILE_TO_RESUME = "no-file-to-resume"
    """`after`, the pattern, files that the killed run had written."""
    RESUMED_RUN_FAILED = "resumed-run-failed"
    """`after`, its end."""
    RESUMED_WITHOUT_STEP = "resumed-without-step"
    """`after`."""
    RESUMED_WITHOUT_PARAMETERS = "resumed-without-parameters"
    """`after`."""
    RESUMED_TOO_FAR = "resumed-too-far"
    """`after`, the step at which it began."""
    RESUMED_NOWHERE = "resumed-nowhere"
    """`after`."""
    RESUMED_DIFFERS = "resumed-differs"
    """`after`, whether it began from the beginning, the `FirstDifference`."""
    NOTHING_RESUMED = "nothing-resumed"
    """`after`, files that the killed run had written."""
    KILLS_IDENTICAL = "kills-identical"
    """Number of kills after which the run was resumed, number after which it began from the beginning."""
    NO_RUN_KILLED = "no-run-killed"
    NO_RUN_RESUMED = "no-run-resumed"


class Reason(Coded[ReasonCode]):
    """One reason; other reasons may be among its arguments."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class SamplerConflict:
    """The settings of samplers that must agree on all ranks, or differ, and do not.

    Args:
        settings: names, each with (rank, value) of all ranks.
        same_rank: whether two samplers have the same `rank`.
    """

    settings: tuple[tuple[str, tuple[tuple[int, Any], ...]], ...] = ()
    same_rank: bool = False

    def __bool__(self) -> bool:
        return bool(self.settings) or self.same_rank
