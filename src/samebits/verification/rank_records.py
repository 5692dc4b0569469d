"""The records of the ranks of one distributed run, from the folder that holds them."""

from __future__ import annotations

import re
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from samebits.comparison.compare import compare
from samebits.comparison.ranks import RankComparison, compare_ranks
from samebits.comparison.results import Comparison
from samebits.environment.ranks import KEY, RankFacts
from samebits.errors import SamebitsError
from samebits.recording.naming import SUFFIX
from samebits.recording.notes import Note, NoteCode
from samebits.recording.store import RecordReader
from samebits.verification.rank_folders import read_label
from samebits.verification.results import ScriptRun, Verification
from samebits.verification.tools import Counted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from samebits.comparison.results import Verdict

_ORDER = ("batch", "draw", "rng", "loss", "read", "save")  # then gradients and state
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
        comparison: over all of them; its findings are those of the rank that parted first.
        first: the rank that parted first; None when none did.
    """

    ranks: Mapping[int, Verification]
    comparison: Comparison
    first: int | None = None


def find_ranks(folder: str | Path) -> RankRecords:
    """The records that belong together in a folder.

    Raises:
        SamebitsError: it is not there, or holds no records of ranks; `ranks-missing`. A record cannot be
            read.
    """
    place = Path(folder)
    names = [entry.name for entry in place.iterdir()] if place.is_dir() else []
    found = {int(match[1]): place / name for name in sorted(names) if (match := _NAME.fullmatch(name))}
    if not found:
        what = "is no folder" if not place.is_dir() else "holds no rank-0.sbr, rank-1.sbr, ..."
        message = (
            f"{place} {what}; expected the folder that `torchrun ... -m samebits run` made, such as "
            ".samebits/train-1.ranks"
        )
        raise SamebitsError(message, slug="ranks-missing")
    facts = {rank: _facts(path) for rank, path in found.items()}
    label = read_label(place).get("launch")
    launch = label or next((fact.launch for fact in facts.values() if fact is not None), "")
    foreign = [rank for rank, fact in facts.items() if fact is not None and fact.launch != launch]
    kept = {rank: path for rank, path in sorted(found.items()) if rank not in foreign}
    sizes = [fact.world_size for rank, fact in facts.items() if fact is not None and rank in kept]
    size = max([*sizes, 1 + max(kept, default=0)])
    return RankRecords(place, kept, size, tuple(found[rank].name for rank in foreign))


def verify_ranks(folder: str | Path) -> tuple[RankComparison, RankRecords]:
    """Compare the ranks of one run with each other.

    Raises:
        SamebitsError: see `find_ranks`; a record is damaged.
    """
    found = find_ranks(folder)
    with ExitStack() as stack:
        readers = {rank: stack.enter_context(RecordReader(path)) for rank, path in found.paths.items()}
        return compare_ranks(readers, found.world_size), found


def verify_launches(first: str | Path, second: str | Path) -> LaunchComparison:
    """Compare two launches of one script, each rank with itself.

    Raises:
        SamebitsError: see `find_ranks`; a record is damaged.
    """
    a, b = find_ranks(first), find_ranks(second)
    common = sorted(set(a.paths) & set(b.paths))
    results = {rank: _compared(a.paths[rank], b.paths[rank]) for rank in common}
    return combined(results, _unfit(a, b))


def combined(results: Mapping[int, Verification], unfit: str | None) -> LaunchComparison:
    """The verdict over all ranks.

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
        reason = f"rank {rank}: {comparison.reason}"
        state = _state(results)
        whole = replace(comparison, reason=reason, notes=told, final_digest=(final[0], final[1]), state=state)
        return LaunchComparison(results, whole, rank)
    doubts = {r: v.comparison.reason for r, v in results.items() if v.comparison.verdict == "not_judged"}
    doubt = unfit or next((f"rank {rank}: {text}" for rank, text in doubts.items()), None)
    notes = tuple(dict.fromkeys(note for v in results.values() for note in v.comparison.notes))
    verdict: Verdict = "not_judged" if doubt else "identical"
    comparison = Comparison(verdict, doubt, steps, (), notes, (final[0], final[1]), state=verdict)
    return LaunchComparison(results, comparison)


def _state(results: Mapping[int, Verification]) -> Verdict:
    """The verdict over the state of all ranks, of which some differ."""
    states = {found.comparison.state for found in results.values()}
    if "different" in states:
        return "different"
    return "identical" if states == {"identical"} else "not_judged"


def _moment(comparison: Comparison) -> tuple[bool, int, int]:
    """When runs of a rank parted. What a rank got from the others differs where gradients are averaged."""
    kinds = [finding.origin.kind for finding in comparison.step_findings] or ["step"]
    order = min(_ORDER.index(kind) if kind in _ORDER else len(_ORDER) for kind in kinds)
    return comparison.first_step is None, comparison.first_step or 0, order


def _told(notes: tuple[Note, ...], unfit: str | None) -> tuple[Note, ...]:
    return (Note.of(NoteCode.UNFIT, unfit), *notes) if unfit else notes


def _unfit(a: RankRecords, b: RankRecords) -> str | None:
    if a.world_size != b.world_size:
        return f"the launches had {a.world_size} and {b.world_size} ranks; expected the same number"
    for which, records in (("first", a), ("second", b)):
        missing = sorted(set(range(records.world_size)) - set(records.paths))
        if missing:
            return f"the {which} launch has no record of rank {', '.join(map(str, missing))}"
    return None


def _compared(first: Path, second: Path) -> Verification:
    with RecordReader(first) as a, RecordReader(second) as b:
        counted = Counted(a)
        comparison = compare(counted, b)
        runs = tuple(
            ScriptRun("compare", str(path), info.exit_status or 0, 0.0, (), info)
            for path, info in ((first, a.info), (second, b.info))
        )
        return Verification(comparison, a.info.command, runs, 0.0, counted.n_values)


def _facts(path: Path) -> RankFacts | None:
    with RecordReader(path) as reader:
        return RankFacts.from_dict(reader.info.environment.get(KEY))
