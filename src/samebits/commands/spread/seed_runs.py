"""Runs several seeds at a time, each in a fresh process, and saves finished runs."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import sys
import time
from dataclasses import dataclass
from importlib import metadata
from typing import TYPE_CHECKING, Any

from samebits._runtime.package import __version__
from samebits._text import files
from samebits._text.masking import Masker
from samebits.commands.spread._metrics import Series
from samebits.commands.spread.request import SPREAD_FOLDER, environment_for
from samebits.commands.spread.seed_processes import JobProcess, LocalProcess, end_all
from samebits.commands.spread.summary import Configuration, Seeding, SeedRun
from samebits.environment.snapshot import numeric_variables
from samebits.errors import SamebitsError
from samebits.recording.naming import target_name

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence
    from pathlib import Path

    from samebits.commands.spread.request import SpreadRequest
    from samebits.commands.spread.seed_processes import SeedProcess
    from samebits.executors.jobs import Executor

_FORMAT = 1
_INDEX = "spread.json"
_NOT_A_RESULT = (OSError, ValueError, KeyError, TypeError, AttributeError)


def folder_of(request: SpreadRequest) -> Path:
    """Return the folder of a request, named after the script and a hash of everything known before a run.

    The hash covers the script's path and the working directory, its arguments, the threads, the step limit,
    the versions of samebits, Python and torch, and the environment variables that numeric libraries read.
    The source files are known only after a run, which saves their hashes; see `changed_files`.
    """
    key = json.dumps(_key(request), sort_keys=True)
    return SPREAD_FOLDER / f"{target_name(request.target)}-{hashlib.sha256(key.encode()).hexdigest()[:10]}"


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
    """Write the command into the folder.

    Raises:
        OSError: it cannot be written.
    """
    _write(
        folder / _INDEX,
        {"format": _FORMAT, "command": command_of(request), "threads": request.threads},
    )


def command_of(request: SpreadRequest) -> tuple[str, ...]:
    """Return the command as a user reads it; secrets in it are masked."""
    target = request.target
    started = [target.script] if target.script is not None else ["-m", str(target.module)]
    by_argument = [request.seed_argument, "{seed}"] if request.seed_argument else []
    return Masker((*started, *target.arguments, *by_argument)).command


def save_run(folder: Path, run: SeedRun) -> None:
    """Save a finished run.

    Raises:
        OSError: it cannot be written.
    """
    _write(folder / f"seed-{run.seed}.json", {"format": _FORMAT, **dataclasses.asdict(run)})


def load_run(folder: Path, seed: int) -> SeedRun | None:
    """Return the finished run of a seed; None when there is none that can be read."""
    try:
        fields = json.loads((folder / f"seed-{seed}.json").read_text(encoding="utf-8"))
        if fields.pop("format") != _FORMAT:
            return None
        return _run(fields)
    except _NOT_A_RESULT:
        return None


def load_configuration(folder: Path) -> Configuration:
    """Return a finished spread, even if its script has changed since.

    Raises:
        SamebitsError: the folder holds no finished spread; `spread-missing`.
    """
    try:
        index = json.loads((folder / _INDEX).read_text(encoding="utf-8"))
        command, threads = tuple(map(str, index["command"])), int(index["threads"])
    except _NOT_A_RESULT:
        raise _missing(folder) from None
    seeds = sorted(_seed(path) for path in folder.glob("seed-*.json") if _seed(path) >= 0)
    loaded = [load_run(folder, seed) for seed in seeds]
    runs = tuple(run for run in loaded if run is not None)
    if not runs:
        raise _missing(folder)
    return Configuration(command, str(folder), threads, runs, reused=tuple(run.seed for run in runs))


def is_spread(folder: Path) -> bool:
    """Tell whether a folder was written by a spread."""
    return (folder / _INDEX).is_file()


def changed_files(run: SeedRun) -> tuple[str, ...]:
    """Return the source files of a run that have changed since."""
    return tuple(path for path, digest in run.files if not digest or file_digest(path) != digest)


def file_digest(path: str) -> str:
    """Return the SHA-256 of a file; empty if it cannot be read."""
    try:
        with files.open_to_read(path) as file:
            return hashlib.sha256(file.read()).hexdigest()
    except OSError:
        return ""


def _missing(folder: Path) -> SamebitsError:
    message = (
        f"{folder} holds no finished spread; expected a folder such as .samebits/spread/train-1a2b3c4d5e"
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


_POLL_S = 0.02


@dataclass(frozen=True, slots=True)
class Ended:
    """A run that ended.

    Args:
        seed: of the run.
        status: exit status as a shell shows it: 128 + N after signal N.
        seconds: its duration.
        files: path of its files, without a suffix: `.sbr`, `.values.jsonl`, `.out`, `.err`.
        script_digest: SHA-256 of the script when the run began; empty for a module or a folder.
    """

    seed: int
    status: int
    seconds: float
    files: Path
    script_digest: str = ""


@dataclass(slots=True)
class _Child:
    """A run in progress."""

    seed: int
    process: SeedProcess
    files: Path
    script_digest: str


class SeedRunner:
    """Runs several seeds at a time, and writes their output to files.

    Args:
        request: the spread.
        folder: of the files of the runs.
        executor: makes them elsewhere; None for this machine.
    """

    def __init__(self, request: SpreadRequest, folder: Path, executor: Executor | None = None) -> None:
        self._request = request
        self._executor = executor
        self._folder = folder
        self._children: list[_Child] = []

    def run(
        self, seeds: Sequence[int], *, go_on: Callable[[], bool], tell: Callable[[list[int]], None]
    ) -> Generator[Ended, None, None]:
        """Yield each run as it ends. When the caller stops listening, runs in progress are ended.

        Args:
            seeds: those to run.
            go_on: called before each start; once it returns False, no further run is started.
            tell: called now and then with the running seeds.

        Raises:
            KeyboardInterrupt: the user ended it, and those in progress were ended.
            SamebitsError: the interpreter cannot be started (`child-start`); a job gives no result
                (`executor-job`).
        """
        waiting = list(seeds)
        with self._ended_at_exit():
            while waiting or self._children:
                while waiting and len(self._children) < self._request.jobs and go_on():
                    self._children.append(self._start(waiting.pop(0)))
                if not self._children:
                    return
                yield from self._collect()
                tell([child.seed for child in self._children])
                time.sleep(_POLL_S)

    def _collect(self) -> list[Ended]:
        ended = []
        for child in list(self._children):
            status = child.process.poll()
            if status is None:
                continue
            self._children.remove(child)
            ended.append(Ended(child.seed, status, child.process.seconds, child.files, child.script_digest))
        return ended

    def _start(self, seed: int) -> _Child:
        files = self._folder / f"seed-{seed}"
        script = self._request.target.script
        digest = "" if script is None else file_digest(script)
        if self._executor is None:
            return _Child(seed, LocalProcess(seed, self._request, files), files, digest)
        return _Child(seed, JobProcess(seed, self._request, files, self._executor), files, digest)

    @contextlib.contextmanager
    def _ended_at_exit(self) -> Iterator[None]:
        try:
            yield
        finally:
            end_all([child.process for child in self._children])
            self._children.clear()
