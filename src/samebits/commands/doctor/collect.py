"""Collects the environment: torch is imported in a fresh process, never in this one."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

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
from samebits.commands.fresh_process import ask_fresh_process
from samebits.environment.repository import collect_source, is_distrusted
from samebits.errors import SamebitsError
from samebits.recording.naming import DEFAULT_FOLDER

if TYPE_CHECKING:
    from collections.abc import Callable


_CHILD_CODE = """\
from samebits.commands.doctor.probe import main
main(sys.argv[2:], startup_modules)
"""
_T = TypeVar("_T")


def collect(folder: Path, imports: frozenset[str] | None = None) -> EnvironmentSnapshot:
    """Collect the snapshot in a fresh process, with the variables and interpreter options of this one.

    Args:
        folder: of the script; its modules are looked up there first.
        imports: names that the script imports (`imported_packages`); None when no script is given.

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
    return ask_fresh_process(_CHILD_CODE, (str(folder), "1" if with_torch else "0"))


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
        return shutil.disk_usage(directory).free
    except OSError:
        return 0


def _ask_git(directory: Path) -> str:
    if shutil.which("git") is None:
        return "absent"
    source = collect_source(directory)
    if source is None:
        return "distrusted" if is_distrusted(directory) else "none"
    return "changed" if source.changed else "clean"
