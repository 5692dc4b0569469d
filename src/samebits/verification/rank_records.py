"""The records of the ranks of a distributed run: one folder for each launch, one file for each rank.

The ranks start one by one and do not know of each other. A folder is created together with its label, in one
atomic step, so that the first rank makes it and the others find it complete.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from samebits._text import files
from samebits.comparison.ranks import RankComparison, compare_ranks
from samebits.comparison.reasons import Reason, ReasonCode
from samebits.comparison.results import Comparison
from samebits.comparison.verdict import compare
from samebits.environment.distributed import KEY, RankFacts
from samebits.errors import SamebitsError
from samebits.recording.naming import FOLDER_SUFFIX, SUFFIX
from samebits.records.kinds import EventKind
from samebits.records.notes import Note, NoteCode
from samebits.records.reader import RecordReader
from samebits.verification._child_records import Counted
from samebits.verification.preconditions import check_writable, refuse_missing
from samebits.verification.results import Purpose, ScriptRun, Verification

if TYPE_CHECKING:
    from collections.abc import Mapping

    from samebits.comparison.results import Verdict

LABEL = "launch.json"
_MOST_TRIES = 1000
_MOST_LABEL = 1 << 16


def rank_record(facts: RankFacts, parent: Path, stem: str) -> Path:
    """Return the record of one rank in the folder of its launch, `parent/STEM-N.ranks/rank-R.sbr`.

    Ranks that are started again by the elastic launcher get a new folder.

    Raises:
        SamebitsError: the folder cannot be made; `record-unwritable`.
    """
    name = record_name(facts.rank)
    check_writable(parent / name)
    pattern = re.compile(re.escape(stem) + r"-(\d+)" + re.escape(FOLDER_SUFFIX))
    for _ in range(_MOST_TRIES):
        numbered = sorted((int(match[1]), entry) for entry, match in _matching(parent, pattern))
        for _, folder in reversed(numbered):
            if _is_of(folder, facts) and not (folder / name).exists():
                return folder / name
        number = numbered[-1][0] + 1 if numbered else 1
        _appear(parent / f"{stem}-{number}{FOLDER_SUFFIX}", facts)
    raise _unwritable(parent, "too many folders appear at once")


def given_rank_record(facts: RankFacts, folder: Path, *, force: bool) -> Path:
    """Return the record of one rank in a folder that the user named.

    Args:
        facts: the rank.
        folder: made if it is not there.
        force: records of another launch are replaced.

    Raises:
        SamebitsError: it holds records of another launch and `force` is False, or is something else;
            `record-exists`. It cannot be written; `record-unwritable`.
    """
    refuse_missing(folder.parent)
    check_writable(folder.parent / "x")
    record = folder / record_name(facts.rank)
    for _ in range(_MOST_TRIES):
        if not os.path.lexists(folder) or (folder.is_dir() and not any(folder.iterdir())):
            _appear(folder, facts)  # also replaces an empty folder
        elif not folder.is_dir():
            message = f"{folder} is a file; a distributed run needs a folder for the records of its ranks"
            raise SamebitsError(message, slug="record-exists")
        elif _is_of(folder, facts) and (force or not record.exists()):
            return record
        elif force and read_label(folder):
            _replace_label(folder, facts)
        else:
            message = f"{folder} exists and is not overwritten; give --force, or another --record"
            raise SamebitsError(message, slug="record-exists")
    raise _unwritable(folder, "it keeps changing")


def record_name(rank: int) -> str:
    """Return the file name of a rank's record."""
    return f"rank-{rank}{SUFFIX}"


def read_label(folder: Path) -> dict[str, Any]:
    """Read the label of a folder of records; empty when it has none that can be read."""
    try:
        with files.open_to_read(folder / LABEL) as file:
            label = json.loads(file.read(_MOST_LABEL))
    except (OSError, ValueError, RecursionError):
        return {}
    return label if isinstance(label, dict) else {}


def _matching(parent: Path, pattern: re.Pattern[str]) -> list[tuple[Path, re.Match[str]]]:
    pairs = ((entry, pattern.fullmatch(entry.name)) for entry in parent.iterdir())
    return [(entry, match) for entry, match in pairs if match]


def _is_of(folder: Path, facts: RankFacts) -> bool:
    return read_label(folder).get("launch") == facts.launch


def _label(facts: RankFacts) -> str:
    return json.dumps({"launch": facts.launch, "world_size": facts.world_size, "restart": facts.restart})


def _appear(folder: Path, facts: RankFacts) -> None:
    """Make a folder with its label in it, unless another process was first."""
    temporary = folder.parent / f".{facts.launch}-{facts.rank}.tmp"  # no other process has this name
    try:
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir()
        files.write_whole(temporary / LABEL, _label(facts).encode())
        with contextlib.suppress(FileExistsError, NotADirectoryError):
            _rename(temporary, folder)
    except OSError as error:
        raise _unwritable(folder, str(error.strerror)) from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _rename(source: Path, target: Path) -> None:
    try:
        source.rename(target)
    except OSError as error:
        if not target.is_dir():
            raise
        raise FileExistsError from error  # ENOTEMPTY: another process was first


def _replace_label(folder: Path, facts: RankFacts) -> None:
    """Label the folder as this launch's, and remove what ranks of another one left in it.

    All ranks may do this at once: each removes records only while the label is not theirs yet.
    """
    try:
        for record in folder.glob(f"rank-*{SUFFIX}"):
            if not _is_of(folder, facts):
                record.unlink(missing_ok=True)
        files.write_whole(folder / LABEL, _label(facts).encode())
    except OSError as error:
        raise _unwritable(folder, str(error.strerror)) from None


def _unwritable(path: Path, reason: str) -> SamebitsError:
    message = f"cannot write {path}: {reason}; give another place for records"
    return SamebitsError(message, slug="record-unwritable")


_ORDER = (
    EventKind.BATCH,
    EventKind.DRAW,
    EventKind.RNG,
    EventKind.LOSS,
    EventKind.READ,
    EventKind.SAVE,
)  # then gradients and state
_NAME = re.compile(r"rank-(\d{1,7})" + re.escape(SUFFIX))


@dataclass(frozen=True)
class RankRecords:
    """The records in one folder.

    Args:
        folder: where they are.
        paths: by rank.
        world_size: how many ranks there were to be.
        foreign: files that belong to another launch, left out.
    """

    folder: Path
    paths: Mapping[int, Path]
    world_size: int
    foreign: tuple[str, ...] = ()


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


def find_ranks(folder: str | Path) -> RankRecords:
    """Find the records that belong together in a folder.

    Raises:
        SamebitsError: it is not there, or holds no records of ranks; `ranks-missing`. A record cannot be
            read.
    """
    directory = Path(folder)
    names = [entry.name for entry in directory.iterdir()] if directory.is_dir() else []
    paths = {int(match[1]): directory / name for name in sorted(names) if (match := _NAME.fullmatch(name))}
    if not paths:
        what = "is no folder" if not directory.is_dir() else "holds no rank-0.sbr, rank-1.sbr, ..."
        message = (
            f"{directory} {what}; expected the folder that `torchrun ... -m samebits run` made, such as "
            ".samebits/train-1.ranks"
        )
        raise SamebitsError(message, slug="ranks-missing")
    facts = {rank: _facts(path) for rank, path in paths.items()}
    label = read_label(directory).get("launch")
    launch = label or next((fact.launch for fact in facts.values() if fact is not None), "")
    foreign = [rank for rank, fact in facts.items() if fact is not None and fact.launch != launch]
    own = {rank: path for rank, path in sorted(paths.items()) if rank not in foreign}
    sizes = [fact.world_size for rank, fact in facts.items() if fact is not None and rank in own]
    size = max([*sizes, 1 + max(own, default=0)])
    return RankRecords(directory, own, size, tuple(paths[rank].name for rank in foreign))


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
    results = {rank: _compared(a.paths[rank], b.paths[rank]) for rank in common}
    return combined(results, _unfit(a, b))


def combined(results: Mapping[int, Verification], unfit: Reason | None) -> LaunchComparison:
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
        told = _told(comparison.notes, unfit)
        reason = Reason.of(ReasonCode.OF_RANK, rank, comparison.reason)
        state = _state(results)
        whole = replace(comparison, reason=reason, notes=told, final_digest=(final[0], final[1]), state=state)
        return LaunchComparison(results, whole, rank)
    doubts = {r: v.comparison.reason for r, v in results.items() if v.comparison.verdict == "not_judged"}
    doubt = unfit or next((Reason.of(ReasonCode.OF_RANK, *each) for each in doubts.items()), None)
    notes = tuple(dict.fromkeys(note for v in results.values() for note in v.comparison.notes))
    verdict: Verdict = "not_judged" if doubt else "identical"
    comparison = Comparison(verdict, doubt, steps, (), notes, (final[0], final[1]), state=verdict)
    return LaunchComparison(results, comparison)


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


def _told(notes: tuple[Note, ...], unfit: Reason | None) -> tuple[Note, ...]:
    return (Note.of(NoteCode.UNFIT, unfit), *notes) if unfit else notes


def _unfit(a: RankRecords, b: RankRecords) -> Reason | None:
    if a.world_size != b.world_size:
        return Reason.of(ReasonCode.OTHER_WORLD_SIZES, a.world_size, b.world_size)
    for which, records in (("first", a), ("second", b)):
        missing = tuple(sorted(set(range(records.world_size)) - set(records.paths)))
        if missing:
            return Reason.of(ReasonCode.RANK_WITHOUT_RECORD, which, missing)
    return None


def _compared(first: Path, second: Path) -> Verification:
    with RecordReader(first) as a, RecordReader(second) as b:
        counted = Counted(a)
        comparison = compare(counted, b)
        runs = tuple(
            ScriptRun(Purpose.COMPARE, str(path), info.exit_status or 0, 0.0, info=info)
            for path, info in ((first, a.info), (second, b.info))
        )
        return Verification(comparison, a.info.command, runs, 0.0, counted.n_values)


def _facts(path: Path) -> RankFacts | None:
    with RecordReader(path) as reader:
        return RankFacts.from_dict(reader.info.environment.get(KEY))
