"""Refusing what cannot work before a script is started for it."""

from __future__ import annotations

import importlib.util
import os
import tempfile
from importlib.machinery import PathFinder
from typing import TYPE_CHECKING

from samebits.errors import SamebitsError
from samebits.recording.script_file import check_target as check_script
from samebits.verification.naming import DEFAULT_FOLDER

if TYPE_CHECKING:
    from pathlib import Path

    from samebits.recording.runner import Target


_LITTLE_BYTES = 1 << 20


def check_target(target: Target) -> None:
    """Refuse a script or a module that is not there.

    Raises:
        SamebitsError: `script-missing`, `script-unreadable`, `script-no-main` or `module-missing`.
    """
    check_script(target.script)
    if target.module is None:
        return
    top = target.module.partition(".")[0]  # finding what is inside a package would import the package here
    if not top or not (PathFinder.find_spec(top, [os.getcwd()]) or importlib.util.find_spec(top)):
        message = f"no module named {target.module}; expected a module for -m (looked in {os.getcwd()} first)"
        raise SamebitsError(message, slug="module-missing")


def check_place(record: Path) -> None:
    """Refuse a place where no record can be written; missing folders are made.

    Raises:
        SamebitsError: `record-unwritable`.
    """
    try:
        record.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=record.parent):
            pass
        for folder in record.parents:
            if folder.name == DEFAULT_FOLDER.name and not (folder / ".gitignore").exists():
                (folder / ".gitignore").write_text("*\n")  # records are not meant for a repository
    except OSError as error:
        message = f"cannot write {record}: {error.strerror}; give another place for records"
        raise SamebitsError(message, slug="record-unwritable") from None


def why_incomplete(record: Path) -> str:
    """Why the writer of a record gave up, as far as it can be seen from outside."""
    disk = os.statvfs(record.parent)
    free = disk.f_bavail * disk.f_frsize
    return "the disk is full" if free < _LITTLE_BYTES else "it could not be written to its end"
