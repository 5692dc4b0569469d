"""Where finished runs are kept, and when they count as the same run."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import sys
from importlib import metadata
from typing import TYPE_CHECKING, Any

from samebits import files
from samebits.environment import numeric_variables
from samebits.errors import SamebitsError
from samebits.masking import Masker
from samebits.package import __version__
from samebits.recording.naming import target_name
from samebits.spread.request import environment_for
from samebits.spread.results import Configuration, Seeding, SeedRun
from samebits.spread.series import Series

if TYPE_CHECKING:
    from pathlib import Path

    from samebits.spread.request import SpreadRequest

_FORMAT = 1
_INDEX = "spread.json"
_NOT_A_RESULT = (OSError, ValueError, KeyError, TypeError, AttributeError)


def folder_of(request: SpreadRequest) -> Path:
    """The folder of a request: named after the script and a hash of all that is known before a run.

    That is: the script's path and the working directory, its arguments, the threads, the step limit,
    the versions of samebits, Python and torch, and the environment variables that numeric libraries read.
    The source files are known after a run; each run keeps their hashes, see `still_valid`.
    """
    key = json.dumps(_key(request), sort_keys=True)
    return request.base / f"{target_name(request.target)}-{hashlib.sha256(key.encode()).hexdigest()[:10]}"


def _key(request: SpreadRequest) -> dict[str, Any]:
    variables = {**os.environ, **environment_for(request)}
    return {
        "format": _FORMAT,
        "samebits": __version__,
        "python": sys.version,
        "torch": _version("torch"),
        "numpy": _version("numpy"),
        "target": dataclasses.asdict(request.target),
        "folder": os.getcwd(),
        "path": os.environ.get("PYTHONPATH", ""),
        "max_steps": request.max_steps,
        "seed_argument": request.seed_argument,
        "control": request.control.to_dict(),
        "variables": numeric_variables(variables),
    }


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def write_index(folder: Path, request: SpreadRequest) -> None:
    """Note what the folder is for.

    Raises:
        OSError: it cannot be written.
    """
    _write(
        folder / _INDEX,
        {"format": _FORMAT, "command": list(Masker(command_of(request)).command), "threads": request.threads},
    )


def command_of(request: SpreadRequest) -> list[str]:
    """The command as a user reads it."""
    target = request.target
    what = [target.script] if target.script is not None else ["-m", str(target.module)]
    by_argument = [request.seed_argument, "{seed}"] if request.seed_argument else []
    return [*what, *target.arguments, *by_argument]


def save_run(folder: Path, run: SeedRun) -> None:
    """Keep a finished run.

    Raises:
        OSError: it cannot be written.
    """
    _write(folder / f"seed-{run.seed}.json", {"format": _FORMAT, **dataclasses.asdict(run)})


def load_run(folder: Path, seed: int) -> SeedRun | None:
    """The finished run of a seed; None when there is none that can be read."""
    try:
        fields = json.loads((folder / f"seed-{seed}.json").read_text(encoding="utf-8"))
        if fields.pop("format") != _FORMAT:
            return None
        return _run(fields)
    except _NOT_A_RESULT:
        return None


def load_configuration(folder: Path) -> Configuration:
    """A finished spread, whatever became of its script since.

    Raises:
        SamebitsError: the folder holds none; `spread-missing`.
    """
    try:
        index = json.loads((folder / _INDEX).read_text(encoding="utf-8"))
        command, threads = tuple(map(str, index["command"])), int(index["threads"])
    except _NOT_A_RESULT:
        raise _missing(folder) from None
    seeds = sorted(_seed(path) for path in folder.glob("seed-*.json") if _seed(path) >= 0)
    found = [load_run(folder, seed) for seed in seeds]
    runs = tuple(run for run in found if run is not None)
    if not runs:
        raise _missing(folder)
    return Configuration(command, str(folder), threads, runs, reused=tuple(run.seed for run in runs))


def is_spread(folder: Path) -> bool:
    """Whether a folder is one that a spread left."""
    return (folder / _INDEX).is_file()


def changed_files(run: SeedRun) -> tuple[str, ...]:
    """Source files of a run that are not now what they were then."""
    return tuple(path for path, digest in run.files if not digest or file_digest(path) != digest)


def file_digest(path: str) -> str:
    """SHA-256 of a file, empty if it cannot be read."""
    try:
        with files.open_to_read(path) as file:
            return hashlib.sha256(file.read()).hexdigest()
    except OSError:
        return ""


def _missing(folder: Path) -> SamebitsError:
    message = (
        f"found no finished spread in {folder}; expected a folder such as .samebits/spread/train-1a2b3c4d5e"
    )
    return SamebitsError(message, slug="spread-missing")


def _seed(path: Path) -> int:
    text = path.stem.removeprefix("seed-")
    return int(text) if text.isascii() and text.isdigit() else -1


def _run(fields: dict[str, Any]) -> SeedRun:
    series = tuple(
        Series(**{**one, "x": tuple(one["x"]), "values": tuple(one["values"])}) for one in fields["series"]
    )
    return SeedRun(
        **{
            **fields,
            "series": series,
            "seedings": tuple(Seeding(**one) for one in fields["seedings"]),
            "saved": tuple(fields["saved"]),
            "files": tuple((str(path), str(digest)) for path, digest in fields["files"]),
        }
    )


def _write(path: Path, fields: dict[str, Any]) -> None:
    files.write_whole(path, json.dumps(fields).encode())
