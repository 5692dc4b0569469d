"""Collects the environment: torch is imported in a fresh process, never in this one."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar

from samebits._runtime.child_bootstrap import AS_A_SCRIPT, python_code
from samebits._runtime.package import LOCATION
from samebits._runtime.processes import ended_with_parent
from samebits.commands.doctor.environment import (
    Cpus,
    DigestCheck,
    EnvironmentSnapshot,
    Gpu,
    Interpreter,
    RecordFolder,
    SwitchView,
    Torch,
)
from samebits.environment.snapshot import collect_source
from samebits.errors import SamebitsError
from samebits.recording.launch import interpreter_options
from samebits.recording.naming import DEFAULT_FOLDER

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


_CHILD_CODE = """\
from samebits.commands.doctor.probe import main
main(sys.argv[2:], startup_modules)
"""
_T = TypeVar("_T")
_SECONDS = 180.0
_LONGEST_REASON = 200


def collect(folder: Path, imports: frozenset[str] | None = None) -> EnvironmentSnapshot:
    """Collect the snapshot in a fresh process, with the variables and interpreter options of this one.

    Args:
        folder: of the script; its modules are looked up there first.
        imports: top-level names that the script imports; None when no script is given.

    Raises:
        SamebitsError: no interpreter is known (`no-interpreter`), or not even plain Python can be examined
            in a fresh process (`doctor-child`).
    """
    facts, failure = _ask(folder, with_torch=True)
    if facts is None:
        facts, second = _ask(folder, with_torch=False)
        if facts is None:
            message = f"a fresh Python process gave no answer: {second}; expected `python -c pass` to work"
            raise SamebitsError(message, slug="doctor-child")
        facts["torch"]["error"] = failure
    return EnvironmentSnapshot(
        interpreter=_from_json(Interpreter, facts["interpreter"]),
        cpus=_from_json(Cpus, facts["cpus"]),
        torch=_from_json(Torch, {**facts["torch"], "gpus": [Gpu(**gpu) for gpu in facts["torch"]["gpus"]]}),
        digest=None if facts["digest"] is None else DigestCheck(**facts["digest"]),
        record_folder=check_record_folder(Path.cwd(), folder),
        variables=facts["variables"],
        packages=facts["packages"],
        imports=imports,
        switches=tuple(_from_json(SwitchView, switch) for switch in facts["switches"]),
        fixable_layout=facts["fixable_layout"],
    )


def _from_json(kind: Callable[..., _T], facts: dict[str, Any]) -> _T:
    """Make a dataclass from its fields as JSON holds them: JSON has no tuples."""
    return kind(**{name: tuple(value) if isinstance(value, list) else value for name, value in facts.items()})


def _ask(folder: Path, *, with_torch: bool) -> tuple[dict[str, Any] | None, str]:
    """Return the answer of a child process, or None and the reason."""
    with tempfile.TemporaryFile() as answer, tempfile.TemporaryFile() as printed:
        number = answer.fileno()
        command = [
            *_interpreter(),
            "-c",
            python_code(AS_A_SCRIPT, _CHILD_CODE),
            LOCATION,
            str(number),
            str(folder),
        ]
        command.append("1" if with_torch else "0")
        try:
            # Whatever a package prints while it is imported must not mix with our report.
            status = subprocess.run(
                command,
                check=False,
                timeout=_SECONDS,
                pass_fds=(number,),
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=printed,
                preexec_fn=ended_with_parent(),
            ).returncode
        except subprocess.TimeoutExpired:
            return None, f"it took more than {_SECONDS:.0f} seconds"
        text = _all_of(answer)
        if text:
            facts: dict[str, Any] = json.loads(text)
            return facts, ""
        return None, _describe_end(status, _all_of(printed))


def _all_of(file: IO[bytes]) -> bytes:
    file.seek(0)
    return file.read()


def _describe_end(status: int, printed: bytes) -> str:
    lines = printed.decode(errors="replace").strip().splitlines() or [""]
    if status < 0:
        return f"Python was ended by {_signal_name(-status)}"
    return f"Python ended with status {status} {lines[-1]}".strip()[:_LONGEST_REASON]


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _interpreter() -> Sequence[str]:
    if not sys.executable:
        message = "sys.executable is empty; expected the path of the Python interpreter that samebits runs in"
        raise SamebitsError(message, slug="no-interpreter")
    return [sys.executable, *interpreter_options(sys.orig_argv)]


def check_record_folder(directory: Path, source: Path) -> RecordFolder:
    """Try to write in the folder of records, and ask git.

    Args:
        directory: the working directory.
        source: folder of the script.
    """
    folder = directory / DEFAULT_FOLDER
    return RecordFolder(str(folder), _why_unwritable(folder), _free_bytes(directory), _ask_git(source))


def _why_unwritable(folder: Path) -> str:
    """Return why records cannot be written; the folder itself is made by the first of them."""
    try:
        with tempfile.TemporaryFile(dir=folder if os.path.lexists(folder) else folder.parent):
            return ""
    except OSError as error:
        return error.strerror or str(error)


def _free_bytes(directory: Path) -> int:
    try:
        disk = os.statvfs(directory)
    except OSError:
        return 0
    return disk.f_bavail * disk.f_frsize


def _ask_git(directory: Path) -> str:
    if shutil.which("git") is None:
        return "absent"
    source = collect_source(directory)
    if source is None:
        return "none"
    return "changed" if source.changed else "clean"
