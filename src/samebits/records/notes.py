"""Remarks on a run, or on a comparison of runs: a code and its arguments.

The program decides by the code. Only `report.notes` turns code and arguments into the sentence that a user
reads. A record stores the code's value and the arguments, so a value never changes its meaning.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from samebits._text.coded import Coded
from samebits._text.str_enum import StrEnum

if TYPE_CHECKING:
    from collections.abc import Iterable


class NoteCode(StrEnum):
    """The closed list of remarks, each with its arguments.

    Those that a record can hold come first, in the order in which the notes of several records are listed;
    their arguments are texts.
    """

    UNREADABLE_TENSORS = "unreadable-tensors"
    """Number of tensors."""
    INTERVENTIONS = "pinned"
    """The names of the interventions."""
    NO_SPACE = "no-room"
    """Size in MB, number of events."""
    NOT_RECORDED = "not-recorded"
    """A `RecordedPart`, the error, and the op, or empty."""
    NOT_PLACED = "not-placed"
    """Number of events, of how many, op, site, reason (`missing`, `misfit` or `both`)."""
    CHILD_NOT_RECORDED = "child-not-recorded"
    """The command, and the site that started it, or empty."""
    COMPILED = "compiled"
    """Number of graphs."""
    COMPILE_OFF = "compile-off"
    """The purpose: `record` or `replay`."""
    COMPILED_ATOMICS = "compiled-atomics"
    """Kernels of compiled code that add with atomic operations in spite of deterministic algorithms."""
    VALUES_BOUND = "values-bound"
    """Size in MB, number of tensors."""
    STEP_NOT_REPEATED = "step-not-repeated"
    """Number of the step, the ranks, the kind of the mismatch, the first tensor that differs, how many do."""
    CODE_CHANGED = "code-changed"
    """Names of code whose files were changed while it ran."""
    NO_LOAD = "no-load"
    """The error that ended the load on the GPU."""
    TEXT = "text"
    """A sentence from a record of version 3, or a remark with an unknown code."""

    # Of a comparison of two records.
    UNFIT = "unfit"
    """The `Reason` why the records cannot speak for whole runs."""
    EXCLUDED = "excluded"
    """Names of state tensors, in order."""
    ONE_SIDED_VALUES = "one-sided-values"
    """Kind, op, (file, line) or None, number that only the first run has, number that only the second has."""
    GENERATOR_DIFFERED = "generator-differed"
    """The evidence for it."""
    EARLY_DIFFERENCE = "early-difference"
    """Kind of the event, step."""
    ARGUMENTS_NOT_RECORDED = "arguments-not-recorded"
    ARGUMENTS_MASKED = "arguments-masked"
    ENVIRONMENT = "environment"
    """A `FactDifference`."""
    MORE_OF_ENVIRONMENT = "more-of-environment"
    """Number of further differences."""
    DATA_NOT_COMPARED = "data-not-compared"
    """Number of data files without a digest, name of the first."""
    STATE_MOVED = "state-moved"
    """Step, number of tensors."""
    STATE_KEPT_LONGER = "state-kept-longer"
    """Step, number of tensors."""
    UNREAD_MEMORY = "unread-memory"
    """Name of the state tensor."""
    LATE_VALUE = "late-value"
    """Site where it entered; one of `Origins.behind`."""
    SEARCH_BOUND = "search-bound"
    """Number of pairs."""
    SEARCH_TIME = "search-time"
    EVENT_MISSING = "event-missing"

    # Of a comparison of ranks.
    RANK_STEPS = "rank-steps"
    """For each number of steps, (the number, the ranks)."""
    AVERAGED = "averaged"
    """Names of parameters."""
    SAME_BATCHES = "same-batches"
    """Steps with the same batches, steps."""
    SAME_SAMPLES = "same-samples"
    """Site of the loader, number of samples."""
    SAMPLES_LEFT_OUT = "samples-left-out"
    """Site of the loader, number of samples, of how many."""
    SAMPLES_ON_NO_RANK = "samples-on-no-rank"
    """Site of the loader, epoch, number of samples, of how many."""
    SAMPLES_PADDED = "samples-padded"
    """Site of the loader, number of samples, of how many."""
    SAMPLES_REPEATED = "samples-repeated"
    """Site of the loader, number of samples."""
    EPOCH_NOT_SET = "epoch-not-set"
    """Site of the loader."""
    SAME_WORKER_SEEDS = "same-worker-seeds"
    """Site of the loader, ranks."""
    LAUNCH_UNEXPLAINED = "launch-unexplained"
    """The error."""
    LAUNCHES_AGREED = "launches-agreed"
    COLLECTIVES_NOT_FOLLOWED = "collectives-not-followed"

    # Of a verification.
    INTERRUPTED = "interrupted"
    TWO_PROCESSORS = "two-processors"
    """(Machine, processor) of run 1, the same of the other run, number of that run."""
    OUT_OF_TIME = "out-of-time"
    """The budget in seconds."""
    SEARCH_FAILED = "search-failed"
    """The error."""
    PATCH_SEARCH_FAILED = "patch-search-failed"
    """The error."""
    STRESS = "stress"
    """Number of the run, its `Stress`."""
    EXIT_STATUS = "exit-status"
    """The script, its status."""
    READ_EARLIER_FILES = "read-earlier-files"
    """Number of the run, the first files as (path, site), number of others, `Reason` for the
    previous run or None."""
    DIFFERENCE_NOT_SEEN_AGAIN = "difference-not-seen-again"
    INTERVENTIONS_IN_DOUBT = "pins-in-doubt"
    """A `Confirmation`; `which` or `chance`: what there was no time for."""
    INTERVENTIONS_IN_VAIN = "pins-in-vain"
    """The names of the interventions."""
    OPS_TAKE_TOO_LONG = "ops-take-too-long"
    OPS_FAILED = "ops-failed"
    """The failure of the script."""
    OPS_FAILED_FROM_START = "ops-failed-from-start"
    """The failure of the script."""
    OPS_AGREED = "ops-agreed"
    """Number of pairs."""
    NO_OP_BLAMED = "no-op-blamed"
    VALUES_NOT_FETCHED = "values-not-fetched"
    """Number of pairs."""
    ORIGINS_OUT_OF_TIME = "origins-out-of-time"
    CHILDREN_DIFFER_TOO = "children-differ-too"
    """Of each child: (its name, the first step that differs or None)."""
    CHILD_COMPARED = "child-compared"
    """Its name, number of steps."""
    REPLAY_ENDED = "replay-ended"
    """The reason."""
    NOT_REPLAYED = "not-replayed"
    REPLAY_DIFFERED = "replay-differed"
    """True if some operation did not repeat; the `Reason` why the runs differ."""

    # Of a check of resuming.
    WHOLE_RUN = "whole-run"
    """A note of that run."""
    NO_TIME_FOR_KILLS = "no-time-for-kills"
    """Numbers of steps."""
    REPETITION_NOT_SEEN = "repetition-not-seen"
    GENERATORS_IDLE = "generators-idle"
    """Generators, named as in the state log."""


class RecordedPart(StrEnum):
    """A part of a run that could not be recorded."""

    BACKWARD = "backward"
    BATCH = "batch"
    CAPTURED_VALUE = "kept-value"
    READ = "read"
    REPETITION = "repetition"
    SAVE = "save"
    SEED = "seed"
    STEP = "step"
    EPOCH = "epoch"
    OPERATION = "operation"
    OPTIMIZER = "optimizer"
    DRAWS = "draws"
    GENERATOR_STATES = "generator-states"
    GRADIENTS = "gradients"
    INDICES = "indices"
    LAST_STATE = "last-state"
    REPLICAS = "replicas"
    STATE_LOG = "state-log"
    TAP = "tap"
    VALUES = "values"
    INVENTORY = "inventory"
    """The packages, the code and its changes, as `samebits rebuild` and `lock` need them."""
    DATA_FILES = "data-files"
    """The digests of the data files that the run read."""

    @property
    def is_state(self) -> bool:
        """Tell whether it holds state; if that is missing, two runs cannot be called identical."""
        return self in (RecordedPart.STEP, RecordedPart.BACKWARD, RecordedPart.LAST_STATE)


STORED_ARGUMENTS = {
    NoteCode.UNREADABLE_TENSORS: 1,
    NoteCode.INTERVENTIONS: None,  # any number
    NoteCode.NO_SPACE: 2,
    NoteCode.NOT_RECORDED: 3,
    NoteCode.NOT_PLACED: 5,
    NoteCode.CHILD_NOT_RECORDED: 2,
    NoteCode.COMPILED: 1,
    NoteCode.COMPILE_OFF: 1,
    NoteCode.COMPILED_ATOMICS: None,
    NoteCode.VALUES_BOUND: 2,
    NoteCode.STEP_NOT_REPEATED: 5,
    NoteCode.NO_LOAD: 1,
    NoteCode.CODE_CHANGED: None,
    NoteCode.TEXT: 1,
}
"""The codes that a record can hold, each with its number of arguments."""


class Note(Coded[NoteCode]):
    """One remark."""

    __slots__ = ()


def listed(notes: Iterable[Note]) -> list[Note]:
    """Return the distinct notes of records, in the order of the enumeration."""
    codes, parts = list(NoteCode), [part.value for part in RecordedPart]

    def rank(note: Note) -> tuple[int, int, tuple[str, ...]]:
        part = note.arguments[0] if note.code is NoteCode.NOT_RECORDED else ""
        return codes.index(note.code), parts.index(part) if part in parts else -1, note.arguments

    return sorted(set(notes), key=rank)


def lost_state(notes: Iterable[Note]) -> Note | None:
    """Return the note that says that a record lacks some of the state; None if there is none.

    Args:
        notes: of a `RunInfo`.
    """
    parts = {part.value for part in RecordedPart if part.is_state}
    lost = (note for note in notes if note.code is NoteCode.NOT_RECORDED and note.arguments[0] in parts)
    return next(lost, None)
