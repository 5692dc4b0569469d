"""Launches of a script of several ranks: made by torch's elastic launcher, and compared rank by rank."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from samebits._text.printable import exit_text
from samebits._text.variable_names import NO_DEFAULTS
from samebits.causes import OriginKind
from samebits.comparison.ranks import RankComparison, compare_ranks
from samebits.comparison.reasons import Reason, ReasonCode
from samebits.comparison.results import Comparison
from samebits.errors import SamebitsError
from samebits.recording.launch import Command, deliver, run_command
from samebits.recording.naming import FOLDER_SUFFIX
from samebits.recording.supervision import CHILD_GRACE_S
from samebits.records.kinds import EventKind, Level
from samebits.records.notes import Note, NoteCode
from samebits.records.reader import RecordReader
from samebits.verification._judge import verification_of_records
from samebits.verification.preconditions import NOTHING_TO_COMPARE, check_target, check_writable
from samebits.verification.rank_records import RankRecords, find_ranks

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from samebits.comparison.results import Verdict
    from samebits.recording.runner import Target
    from samebits.verification.results import Verification

_LAUNCHER = "torch.distributed.run"  # what `torchrun` is
# Of the values that differ in one step, these come first in this order, then gradients and state.
_ORDER = (EventKind.BATCH, EventKind.DRAW, EventKind.RNG, EventKind.LOSS, EventKind.READ, EventKind.SAVE)


@dataclass(frozen=True)
class LaunchRequest:
    """One question: does this script give the same bits on each rank, each time?

    Args:
        target: the script or module and its arguments.
        folder: where the records go.
        ranks: how many processes are started on this machine, at least 1.
        runs: how many launches are compared, at least 2.
        steps: stop each rank after this many steps.
        level: `op` records every operation already in the first launches.
        run_options: further options of `samebits run`: seeds, switches, interventions.
        localise: on a difference, launch twice more to find the operation.
        output: where the script's standard output goes: `inherit`, `stderr` or `nothing`.
        environment: variables that every launch has beside the user's own.
    """

    target: Target
    folder: Path
    ranks: int
    runs: int = 2
    steps: int | None = None
    level: Level = Level.STEP
    run_options: tuple[str, ...] = ()
    localise: bool = True
    output: str = "inherit"
    environment: Mapping[str, str] = field(default_factory=dict)


def verify_launch(request: LaunchRequest, announce: Callable[[str], None] | None = None) -> LaunchComparison:
    """Launch a script several times and say whether each rank gives the same bits.

    Args:
        request: what is verified.
        announce: called with a line of text about the next launch.

    Raises:
        SamebitsError: the script or the launcher is not there, records cannot be written or read.
        KeyboardInterrupt: by Ctrl-C; records are kept.
    """
    check_target(request.target)
    _check_folder(request.folder)
    tell = announce or (lambda _: None)
    first = request.folder / f"run-1{FOLDER_SUFFIX}"
    result = None
    for number in range(1, request.runs + 1):
        tell(f"launch {number} of {request.runs}")
        folder = request.folder / f"run-{number}{FOLDER_SUFFIX}"
        status = _launch(request, folder)
        if not folder.is_dir():
            raise _no_records(folder, status)
        if number > 1:
            result = verify_launches(first, folder)
            if result.comparison.verdict != "identical":
                break
    assert result is not None  # noqa: S101 - there are at least 2 runs
    if result.comparison.verdict == "different" and request.localise and request.level == Level.STEP:
        return _localised(request, result, tell)
    return result


def _localised(
    request: LaunchRequest, result: LaunchComparison, tell: Callable[[str], None]
) -> LaunchComparison:
    """Launch twice more with every operation recorded, up to the step that differed."""
    step = result.comparison.first_step
    steps = request.steps if step is None else step + 1
    again = replace(request, level=Level.OP, steps=steps, output="nothing")
    folders = [request.folder / f"ops-{number}{FOLDER_SUFFIX}" for number in (1, 2)]
    for number, folder in enumerate(folders, start=1):
        tell(f"launch {number} of 2 with every operation recorded")
        _launch(again, folder)
    try:
        traced = verify_launches(*folders)
    except SamebitsError as error:  # the verdict stands
        return _noted(result, Note.of(NoteCode.LAUNCH_UNEXPLAINED, str(error)))
    if traced.comparison.verdict != "different":
        return _noted(result, Note.of(NoteCode.LAUNCHES_AGREED))
    rank = result.first if result.first in traced.ranks else traced.first
    if rank is None or not (known := _believable(traced.ranks[rank].comparison)).findings:
        return _noted(result, Note.of(NoteCode.COLLECTIVES_NOT_FOLLOWED))
    ranks = {**traced.ranks, rank: replace(traced.ranks[rank], comparison=known)}
    comparison = replace(known, reason=result.comparison.reason, steps=result.comparison.steps)
    return LaunchComparison(ranks, comparison, rank)


def _believable(comparison: Comparison) -> Comparison:
    """Leave out memory that seems to be read before it was written: gloo and NCCL fill it unseen.

    `DistributedDataParallel` takes its buckets from `torch.empty`, and its C++ code writes to them.
    """
    findings = tuple(
        finding for finding in comparison.findings if finding.origin.origin_kind != OriginKind.UNINITIALIZED
    )
    return replace(comparison, findings=findings)


def _noted(result: LaunchComparison, note: Note) -> LaunchComparison:
    comparison = result.comparison
    return replace(result, comparison=replace(comparison, notes=(note, *comparison.notes)))


def _launch(request: LaunchRequest, folder: Path) -> int:
    """Start all ranks, wait for them, and return the status of the launcher."""
    target = request.target
    options = ["--record", str(folder), "--level", request.level, "--no-progress", *request.run_options]
    options += ["--steps", str(request.steps)] if request.steps is not None else []
    script = ["--", target.script] if target.script is not None else ["-m", str(target.module)]
    launcher = [sys.executable, "-m", _LAUNCHER, "--standalone", f"--nproc-per-node={request.ranks}"]
    command = [*launcher, "--no-python", sys.executable, "-m", "samebits", "run", *options, *script]
    inherited = {name: value for name, value in os.environ.items() if name not in ("RANK", "WORLD_SIZE")}
    outcome = run_command(
        Command(
            [*command, *target.arguments],
            {**inherited, **request.environment, NO_DEFAULTS: "1"},  # they are in `run_options`
            request.output,
            grace_s=CHILD_GRACE_S,
        )
    )
    deliver(outcome)
    return outcome.status


def _check_folder(folder: Path) -> None:
    first = folder / f"run-1{FOLDER_SUFFIX}"
    if first.exists():
        message = f"{first} exists and is not overwritten; give another --keep, or remove it"
        raise SamebitsError(message, slug="record-exists")
    check_writable(first / "x")
    first.rmdir()  # the ranks make it


def _no_records(folder: Path, status: int) -> SamebitsError:
    message = (
        f"the launcher ended {exit_text(status)} and left no records in {folder}; its message is above. "
        f"Expected that `{_LAUNCHER}` starts `samebits run` on each rank"
    )
    return SamebitsError(message, slug="ranks-missing")


@dataclass(frozen=True)
class LaunchComparison:
    """Two launches compared, rank by rank.

    Args:
        ranks: the verdict on each rank that both have.
        comparison: over all of them; its findings are those of the rank that diverged first.
        first: the rank that diverged first; None when none did.
    """

    ranks: Mapping[int, Verification]
    comparison: Comparison
    first: int | None = None


def verify_ranks(folder: str | Path) -> tuple[RankComparison, RankRecords]:
    """Compare the ranks of one run with each other.

    Raises:
        SamebitsError: see `find_ranks`; a record is damaged.
    """
    records = find_ranks(folder)
    with ExitStack() as stack:
        readers = {rank: stack.enter_context(RecordReader(path)) for rank, path in records.paths.items()}
        return compare_ranks(readers, records.world_size), records


def verify_launches(first: str | Path, second: str | Path) -> LaunchComparison:
    """Compare two launches of one script, each rank with itself.

    Raises:
        SamebitsError: see `find_ranks`; a record is damaged.
    """
    a, b = find_ranks(first), find_ranks(second)
    common = sorted(set(a.paths) & set(b.paths))
    results = {rank: verification_of_records(a.paths[rank], b.paths[rank]) for rank in common}
    return _combined(results, _unfit(a, b))


def _combined(results: Mapping[int, Verification], unfit: Reason | None) -> LaunchComparison:
    """Return the verdict over all ranks.

    Args:
        results: by rank.
        unfit: why not all ranks could be compared; None when they could.
    """
    different = {r: v.comparison for r, v in results.items() if v.comparison.verdict == "different"}
    steps = min((v.comparison.steps for v in results.values()), default=0)
    final = tuple("".join(v.comparison.final_digest[i] for v in results.values()) for i in (0, 1))
    if different:
        rank = min(different, key=lambda r: (*_moment(different[r]), r))
        comparison = different[rank]
        whole = replace(
            comparison,
            reason=Reason.of(ReasonCode.OF_RANK, rank, comparison.reason),
            notes=(Note.of(NoteCode.UNFIT, unfit), *comparison.notes) if unfit else comparison.notes,
            final_digest=(final[0], final[1]),
            state=_state(results),
        )
        return LaunchComparison(results, whole, rank)
    doubt = unfit or next((Reason.of(ReasonCode.OF_RANK, *each) for each in _doubts(results).items()), None)
    notes = tuple(dict.fromkeys(note for v in results.values() for note in v.comparison.notes))
    verdict: Verdict = "not_judged" if doubt else "identical"
    comparison = Comparison(verdict, doubt, steps, (), notes, (final[0], final[1]), state=verdict)
    return LaunchComparison(results, comparison)


def _doubts(results: Mapping[int, Verification]) -> dict[int, Reason]:
    """Return why ranks were not judged; one that had nothing to compare is no doubt where another had."""
    reasons = {r: v.comparison.reason for r, v in results.items() if v.comparison.verdict == "not_judged"}
    doubts = {r: reason for r, reason in reasons.items() if reason is not None}
    judged = {r: reason for r, reason in doubts.items() if reason.code not in NOTHING_TO_COMPARE}
    return judged if len(doubts) < len(results) else judged or doubts


def _state(results: Mapping[int, Verification]) -> Verdict:
    """Return the verdict over the state of all ranks, of which some differ."""
    states = {result.comparison.state for result in results.values()}
    if "different" in states:
        return "different"
    return "identical" if states == {"identical"} else "not_judged"


def _moment(comparison: Comparison) -> tuple[bool, int, int]:
    """Return when runs of a rank diverged; values from other ranks differ where gradients are averaged."""
    kinds = [finding.origin.kind for finding in comparison.step_findings] or [EventKind.STEP]
    order = min(_ORDER.index(kind) if kind in _ORDER else len(_ORDER) for kind in kinds)
    return comparison.first_step is None, comparison.first_step or 0, order


def _unfit(a: RankRecords, b: RankRecords) -> Reason | None:
    if a.world_size != b.world_size:
        return Reason.of(ReasonCode.OTHER_WORLD_SIZES, a.world_size, b.world_size)
    for which, records in (("first", a), ("second", b)):
        missing = tuple(sorted(set(range(records.world_size)) - set(records.paths)))
        if missing:
            return Reason.of(ReasonCode.RANK_WITHOUT_RECORD, which, missing)
    return None
