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
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from samebits._text import files
from samebits.environment.distributed import KEY, RankFacts
from samebits.errors import SamebitsError
from samebits.recording.naming import FOLDER_SUFFIX, SUFFIX
from samebits.records.reader import RecordReader
from samebits.verification.preconditions import check_writable, refuse_missing

if TYPE_CHECKING:
    from collections.abc import Mapping

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
        matches = ((pattern.fullmatch(path.name), path) for path in parent.iterdir())
        numbered = sorted((int(match[1]), path) for match, path in matches if match)
        for _, folder in reversed(numbered):
            if _is_of(folder, facts) and not (folder / name).exists():
                return folder / name
        number = numbered[-1][0] + 1 if numbered else 1
        _make_folder(parent / f"{stem}-{number}{FOLDER_SUFFIX}", facts)
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
            _make_folder(folder, facts)  # also replaces an empty folder
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


def _is_of(folder: Path, facts: RankFacts) -> bool:
    return read_label(folder).get("launch") == facts.launch


def _label(facts: RankFacts) -> str:
    return json.dumps({"launch": facts.launch, "world_size": facts.world_size, "restart": facts.restart})


def _make_folder(folder: Path, facts: RankFacts) -> None:
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
    message = f"cannot write {path}: {reason}; give another path for records"
    return SamebitsError(message, slug="record-unwritable")


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


def find_ranks(folder: str | Path) -> RankRecords:
    """Find the records that belong together in a folder.

    Raises:
        SamebitsError: it is not there, or holds no records of ranks; `ranks-missing`. A record cannot be
            read.
    """
    directory = Path(folder)
    names = [path.name for path in directory.iterdir()] if directory.is_dir() else []
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


def _facts(path: Path) -> RankFacts | None:
    with RecordReader(path) as reader:
        return RankFacts.from_dict(reader.info.environment.get(KEY))
