"""Where the ranks of a distributed run put their records: one folder for each launch, one file for each rank.

The ranks come to it one by one and know nothing of each other. A folder appears under its name with its label
in it, in one step, so that the first rank makes it and the others find it whole.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
from typing import TYPE_CHECKING, Any

from samebits import files
from samebits.errors import SamebitsError
from samebits.recording.naming import FOLDER_SUFFIX, SUFFIX
from samebits.verification.preconditions import check_writable, refuse_missing

if TYPE_CHECKING:
    from pathlib import Path

    from samebits.environment.ranks import RankFacts

LABEL = "launch.json"
_MOST_TRIES = 1000
_MOST_LABEL = 1 << 16


def rank_record(facts: RankFacts, parent: Path, stem: str) -> Path:
    """The record of one rank in the folder of its launch, `parent/STEM-N.ranks/rank-R.sbr`.

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
    """The record of one rank in a folder that the user named.

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
            _appear(folder, facts)  # also in the place of an empty folder
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
    """The file name of a rank's record."""
    return f"rank-{rank}{SUFFIX}"


def read_label(folder: Path) -> dict[str, Any]:
    """What the label of a folder of records says; empty when it has none that can be read."""
    try:
        with files.open_to_read(folder / LABEL) as file:
            found = json.loads(file.read(_MOST_LABEL))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


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
    """The folder belongs to this launch from now on; what ranks of another one left in it goes.

    All ranks may do this at once: each removes records only while the label is not theirs yet.
    """
    try:
        for record in folder.glob(f"rank-*{SUFFIX}"):
            if not _is_of(folder, facts):
                record.unlink(missing_ok=True)
        files.write_whole(folder / LABEL, _label(facts).encode())
    except OSError as error:
        raise _unwritable(folder, str(error.strerror)) from None


def _unwritable(place: Path, reason: str) -> SamebitsError:
    message = f"cannot write {place}: {reason}; give another place for records"
    return SamebitsError(message, slug="record-unwritable")
