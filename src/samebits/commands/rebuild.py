"""A folder from which a recorded run can be made again on another machine."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from samebits._text.files import write_whole
from samebits.commands.commit_files import write_files
from samebits.commands.pins import SAMEBITS, pins_of
from samebits.commands.rerun import has_all_arguments, repeated_target
from samebits.environment.files import sha256_of, sha256_of_folder
from samebits.environment.repository import git_variables
from samebits.environment.snapshot import fact_at, is_whole, table_at
from samebits.errors import SamebitsError
from samebits.switches.variables import HARMLESS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from samebits.commands.pins import Pins, Unlike
    from samebits.records.events import RunInfo

GOLDEN = "golden.sbr"
CODE = "code"
_SHARED = 0o644
_PROGRAM = 0o755
_MOST_SECONDS = 600


class CodeState(Enum):
    """Whether the code of the run is in the folder."""

    WHOLE = "whole"
    """With the changes since the commit."""
    UNCHANGED = "unchanged"
    """As it was committed: git could not apply the changes."""
    NO_GIT = "no-git"
    """There is no git to take it from the repository."""
    MISSING = "missing"
    """The commit is not in the repository."""
    NO_COMMIT = "no-commit"
    """The record names none, as of a run in no git repository."""

    @property
    def is_there(self) -> bool:
        """True if the folder has code."""
        return self in (CodeState.WHOLE, CodeState.UNCHANGED)


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """What was written, and what is missing to make the run again.

    Args:
        folder: that holds it.
        files: their names, in the order in which they are used.
        code: whether the code is in it.
        unlike: modules whose code is not as it was in the run.
        left_out: changed files that the record knows by digest only.
        masked: whether secrets are masked in the patch.
        data: names of the data files that the run read and the code does not have, with their SHA-256.
        python: version of Python.
        absolute: paths in the command that name a place on the machine of the run.
        packages: that will not be just as they were.
        variables: names of environment variables whose values the record does not hold whole.
        has_all_arguments: whether the record holds the arguments of the script as they were.
    """

    folder: str
    files: tuple[str, ...]
    code: CodeState
    unlike: tuple[str, ...]
    left_out: tuple[str, ...]
    masked: bool
    data: tuple[tuple[str, str], ...]
    python: str
    absolute: tuple[str, ...] = ()
    packages: tuple[Unlike, ...] = ()
    variables: tuple[str, ...] = ()
    has_all_arguments: bool = True


def rebuild(record: Path, recorded: RunInfo, folder: Path, repository: Path) -> Rebuilt:
    """Write a folder with the packages, the code and the command of a recorded run.

    Args:
        record: is copied into the folder, to check the new run against.
        recorded: its run.
        folder: must be empty or new.
        repository: a clone of the repository that the run was in; the commit is taken from it.

    Raises:
        SamebitsError: the record has no inventory (`rebuild-inventory`); the folder is not empty
            (`rebuild-folder`); as of `repeated_target`.
    """
    facts = recorded.environment
    if not table_at(facts, "distributions"):
        message = (
            f"{record} does not hold what is needed to rebuild its environment; expected a record that "
            "`samebits run` made, of a run that was not killed"
        )
        raise SamebitsError(message, slug="rebuild-inventory")
    whole = has_all_arguments(recorded)
    repeated_target(recorded, None if whole else ())
    _prepare(folder)
    files = [GOLDEN, "requirements.txt", "constraints.txt"]
    shutil.copyfile(record, folder / GOLDEN)
    diff = fact_at(facts, "patch", "diff")
    if isinstance(diff, str) and diff:
        files.append("changes.patch")
        _write(folder / "changes.patch", diff)
    code = _check_out(facts, folder, repository)
    pins = pins_of(facts, folder / CODE if code.is_there else None)
    _write(folder / "requirements.txt", _lines(f"# Python {_python(facts)}", *pins.requirements))
    _write(folder / "constraints.txt", _lines(*pins.constraints))
    files += ["environment.sh", "install.sh", "run.sh", "Dockerfile", ".dockerignore"]
    _write(folder / "environment.sh", _environment(facts))
    _write(folder / "install.sh", _installation(facts, pins), mode=_PROGRAM)
    _write(folder / "run.sh", _script(facts), mode=_PROGRAM)
    _write(folder / "Dockerfile", _dockerfile(facts, pins))
    _write(folder / ".dockerignore", "venv\n")
    return Rebuilt(
        folder=str(folder),
        files=tuple(files),
        code=code,
        unlike=_unlike(facts, folder) if code.is_there else (),
        left_out=_left_out(facts),
        masked=bool(fact_at(facts, "patch", "masked")),
        data=tuple(_missing_data(facts, folder / CODE)),
        python=_python(facts),
        absolute=tuple(word for word in recorded.command if os.path.isabs(word)),
        packages=pins.unlike,
        variables=tuple(name for name, value in _variables(facts).items() if not is_whole(value)),
        has_all_arguments=whole,
    )


def _prepare(folder: Path) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise SamebitsError(f"{folder} is not empty; expected a new folder", slug="rebuild-folder")
    folder.mkdir(parents=True, exist_ok=True)


def _write(path: Path, text: str, mode: int = _SHARED) -> None:
    write_whole(path, text.encode(errors="surrogateescape"), mode=mode)


def _python(facts: Mapping[str, Any]) -> str:
    """Return the version of Python; that of a stranger's record must not add commands to a program."""
    version = re.match(r"3\.\d{1,3}(\.\d{1,3})?", str(fact_at(facts, "python", "version")))
    return version[0] if version else "3"


def _environment(facts: Mapping[str, Any]) -> str:
    """Return what can change bits as a shell sets them, a comment where a value is not whole."""
    lines = (
        f"export {name}={shlex.quote(value)}\n" if is_whole(value) else f"# {name}: not whole in the record\n"
        for name, value in sorted(_variables(facts).items())
    )
    return "".join(lines)


def _variables(facts: Mapping[str, Any]) -> dict[str, str]:
    """Return the variables that the run had and that can change bits."""
    variables = {
        name: str(value)
        for name, value in table_at(facts, "variables").items()
        if re.fullmatch(r"[A-Za-z_]\w*", name) and name not in HARMLESS
    }
    seed = fact_at(facts, "python", "hash_seed")
    if seed not in (None, "random"):
        variables["PYTHONHASHSEED"] = str(seed)
    threads = fact_at(facts, "torch", "threads", "intra-op")
    if threads is not None:
        variables.setdefault("OMP_NUM_THREADS", str(threads))
    return variables


def _lines(*lines: str) -> str:
    return "".join(f"{line}\n" for line in lines)


def _installation(facts: Mapping[str, Any], pins: Pins) -> str:
    """Return the program that makes the virtual environment."""
    minor = ".".join(_python(facts).split(".")[:2])
    own = f"{SAMEBITS}=={pins.samebits}" if pins.samebits else SAMEBITS
    words = " ".join(pins.from_code)
    from_code = f'(cd "$here/{CODE}" && add --no-deps {words})\n' if words else ""
    return f"""\
#!/bin/sh
# Makes the folder venv, with the packages of the run. It needs Python {minor}.
set -e
here=$(cd "$(dirname "$0")" && pwd)
"${{PYTHON:-python{minor}}}" -m venv --clear "$here/venv"
add() {{
    "$here/venv/bin/python" -m pip --disable-pip-version-check install --quiet "$@"
}}
add -r "$here/requirements.txt" -c "$here/constraints.txt"
{from_code}\
add "${{SAMEBITS:-{own}}}" -c "$here/constraints.txt"
"""


def _script(facts: Mapping[str, Any]) -> str:
    """Return the program that makes the run again, after it has told what is unlike here."""
    return f"""\
#!/bin/sh
# Makes the recorded run again, and compares it bit for bit.
set -e
here=$(cd "$(dirname "$0")" && pwd)
[ -x "$here/venv/bin/samebits" ] || "$here/install.sh"
. "$here/environment.sh"
cd "$here/{CODE}"/{shlex.quote(_folder(facts))}
"$here/venv/bin/samebits" diff "$here/{GOLDEN}" >&2 || echo >&2
exec "$here/venv/bin/samebits" check "$here/{GOLDEN}" "$@"
"""


def _folder(facts: Mapping[str, Any]) -> str:
    """Return the working folder of the run below the code."""
    folder = fact_at(facts, "patch", "folder")
    return str(folder) if folder and ".." not in str(folder).split("/") else "."


def _dockerfile(facts: Mapping[str, Any], pins: Pins) -> str:
    """Return how an image is built; the compiler is for `torch.compile` and packages without a wheel."""
    programs = " ".join(["g++", *["git"] * pins.needs_git])
    return f"""\
FROM python:{_python(facts)}-slim
RUN apt-get update && apt-get install -y --no-install-recommends {programs} && rm -rf /var/lib/apt/lists/*
WORKDIR /run
COPY . .
ARG SAMEBITS
RUN PYTHON=python ./install.sh
CMD ["./run.sh"]
"""


def _check_out(facts: Mapping[str, Any], folder: Path, repository: Path) -> CodeState:
    """Put the code of the commit, with the changes, below the folder."""
    commit = str(fact_at(facts, "source", "commit"))
    if not re.fullmatch(r"[0-9a-f]{40,64}", commit):
        return CodeState.NO_COMMIT
    if shutil.which("git") is None:
        return CodeState.NO_GIT
    code = folder / CODE
    code.mkdir()
    if not write_files(repository, commit, code, _MOST_SECONDS):
        shutil.rmtree(code)
        return CodeState.MISSING
    return _apply(folder / "changes.patch", code)


def _apply(patch: Path, code: Path) -> CodeState:
    """Apply the changes; git changes nothing if one of them does not fit."""
    if patch.exists():
        try:
            _git(code, "apply", "--whitespace=nowarn", os.path.abspath(patch))
        except (OSError, subprocess.SubprocessError):
            return CodeState.UNCHANGED
    return CodeState.WHOLE


def _git(folder: Path, *words: str) -> bytes:
    """Ask git; the code that is checked out is in no repository, also where the folder is in one."""
    environment = git_variables({"GIT_CEILING_DIRECTORIES": os.path.abspath(folder.parent)})
    done = subprocess.run(
        ["git", "-C", str(folder), *words],
        capture_output=True, check=True, timeout=_MOST_SECONDS, env=environment, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    return done.stdout


def _unlike(facts: Mapping[str, Any], folder: Path) -> tuple[str, ...]:
    """Return which modules of the run are not below the folder with the same contents."""
    present = {sha256_of(str(path)) for path in (folder / CODE).rglob("*") if path.is_file()}
    code = table_at(facts, "code")
    return tuple(str(name) for name in sorted(code) if fact_at(code, name, "sha256") not in present)


def _left_out(facts: Mapping[str, Any]) -> tuple[str, ...]:
    rows = fact_at(facts, "patch", "left_out")
    return (
        tuple(str(row[0]) for row in rows if isinstance(row, list) and row) if isinstance(rows, list) else ()
    )


def _missing_data(facts: Mapping[str, Any], code: Path) -> Iterator[tuple[str, str]]:
    """Yield the names and digests of data files that are not in the code as they were."""
    files = table_at(facts, "data", "files")
    for name, wanted in ((str(name), str(fact_at(files, name, "sha256"))) for name in files):
        if all(_sha256_below(code, place, name) != wanted for place in _places(name, _folder(facts))):
            yield name, wanted


def _places(name: str, folder: str) -> Iterator[str]:
    """Yield where a data file of the run can be below the code; its name may be that on another machine."""
    if not name.startswith(("/", "~")):
        yield os.path.normpath(os.path.join(folder, name))
        return
    parts = name.strip("/").split("/")
    yield from ("/".join(parts[at:]) for at in range(1, len(parts)))


def _sha256_below(root: Path, place: str, name: str) -> str | None:
    """Return the digest of a file, or of a folder as records have it; None if it is not below a root."""
    with suppress(OSError, ValueError):  # a null character in the name
        path = (root / place).resolve()
        if path.is_relative_to(root.resolve()):
            return sha256_of_folder(path, name) if name.endswith("/") else sha256_of(str(path))
    return None
