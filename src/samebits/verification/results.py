"""The result of a verification."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from samebits._text.str_enum import StrEnum
from samebits.comparison.changed_code import code_digests
from samebits.comparison.results import Remedy, RemedyTrial

if TYPE_CHECKING:
    from samebits.comparison.reasons import Reason
    from samebits.comparison.results import Comparison, Finding, LineChange
    from samebits.diagnosis.patches.edits import Patch
    from samebits.records.events import RunInfo


class Purpose(StrEnum):
    """The reason for which samebits made a run."""

    PREPARE = "prepare"
    """It left files that the compared runs read."""
    COMPARE = "compare"
    EXCUSE = "excuse"
    """Again, without memory that nothing read."""
    LOCALISE = "localise"
    CAPTURE = "capture"
    """Values were saved, or replaced, at the origins."""
    AGAIN = "again"
    """As the compared ones, to see the difference once more."""
    INTERVENE = "intervene"
    """Something was pinned."""
    FIX = "fix"
    """A patch was tried."""
    REPLAY = "replay"
    CROWDED = "crowded"
    """At the same time as another, of which one failed: both were made again."""

    # Of a check of resuming.
    WHOLE = "whole"
    KILLED = "killed"
    RESUMED = "resumed"


@dataclass(frozen=True)
class Stress:
    """The settings that `--stress` gave to one run.

    Args:
        hash_seed: `PYTHONHASHSEED`; None where the user's own was left alone.
        padding: bytes added to the environment.
        scheduling_noise: seed of the thread that disturbs scheduling.
        memory_fill: the byte that fills new memory; None where the C library cannot do that.
        fixed_layout: whether address space randomisation was off.
    """

    hash_seed: int | None
    padding: int
    scheduling_noise: int
    memory_fill: int | None
    fixed_layout: bool


@dataclass(frozen=True)
class ScriptRun:
    """One run of the script that samebits made.

    Args:
        purpose: why it was made.
        record: path of its record.
        status: exit status as a shell would show it.
        seconds: how long it took.
        stress: what `--stress` changed; None without it.
        info: what the record says of the run; None when it left no record.
        timed_out: whether it was ended at its time limit.
        has_record: whether its record is still there.
        machine: the name of the machine that made it in a job; empty for this one.
    """

    purpose: Purpose
    record: str
    status: int
    seconds: float
    stress: Stress | None = None
    info: RunInfo | None = None
    timed_out: bool = False
    has_record: bool = True
    machine: str = ""


@dataclass(frozen=True)
class Fix:
    """A patch, and whether runs with it were identical.

    Args:
        patch: the changes; None where none could be made.
        root: the folder that the diff applies in.
        pairs: how many pairs of runs with it were identical.
        confirmed: whether all were; None where it was not tried.
        still: what still differed with it; None where nothing did.
        refusals: why lines were left alone.
        diff_file: where the diff was written.
        applied: whether the files were changed.
        steps: after how many steps the runs with it were ended; None where they went to their ends.
    """

    patch: Patch | None
    root: str
    pairs: int = 0
    confirmed: bool | None = None
    still: Reason | None = None
    refusals: tuple[str, ...] = ()
    diff_file: str = ""
    applied: bool = False
    steps: int | None = None

    @property
    def diff(self) -> bytes:
        """The unified diff; empty without a patch."""
        return b"" if self.patch is None else self.patch.diff(self.root)

    def replaced(self) -> dict[str, bytes]:
        """Return the contents that files had before they were changed, by real path; empty if none was."""
        if self.patch is None or not self.applied:
            return {}
        return {os.path.realpath(file.before.path): file.before.data for file in self.patch.files}

    def remedy(self, finding: Finding) -> Remedy:
        """Return the finding's remedy with the whole patch, and what runs with it showed."""
        known = finding.remedy or Remedy("")
        if self.patch is None or (known.trial is not None and self.confirmed is None):
            return known
        if known.trial is not None and not self.confirmed:
            # What the interventions have shown stays; the lines do not.
            return replace(known, before="", after="", changes=())
        shown = (known.before, known.after)
        before, after = shown if known.after and known.after in self._added() else self.patch.first
        text = known.text or self.patch.why[0]
        trial = None
        if self.confirmed is not None:
            trial = RemedyTrial("change", self.confirmed, self.pairs, steps=self.steps)
        return Remedy(text, known.controls, before, after, self._changes(), trial)

    def is_remedy_of(self, finding: Finding) -> bool:
        """Tell whether the patch is a remedy for this finding too: nothing differed with it."""
        return bool(self.confirmed) and finding.remedy is not None

    def _changes(self) -> tuple[LineChange, ...]:
        return () if self.patch is None else self.patch.changes()

    def _added(self) -> set[str]:
        """Return the lines that the patch adds, without indentation."""
        return {line.strip() for change in self._changes() for line in change.after}


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
        op_records: the two records with operations in which the origins were found; empty without any.
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
    op_records: tuple[str, ...] = ()

    @property
    def code(self) -> tuple[dict[str, str], ...]:
        """The code of the first of these runs and of the last, by `code_digests`."""
        infos = [run.info for run in self.compared]
        return tuple({} if info is None else code_digests(info) for info in (*infos[:1], *infos[-1:]))

    @property
    def compared(self) -> tuple[ScriptRun, ...]:
        """The runs that the verdict is about."""
        return tuple(run for run in self.runs if run.purpose == Purpose.COMPARE)
