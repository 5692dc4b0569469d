"""Refusing what cannot work before a script is started for it."""

from __future__ import annotations

import importlib.util
import os
import tempfile
from importlib.machinery import PathFinder
from typing import TYPE_CHECKING

from samebits import files
from samebits.errors import SamebitsError
from samebits.recording.naming import DEFAULT_FOLDER
from samebits.recording.script_file import check_target as check_script

if TYPE_CHECKING:
    from pathlib import Path

    from samebits.recording.runner import Target


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


def check_writable(record: Path) -> None:
    """Refuse a place where no record can be written; missing folders are made.

    For what a user named see `refuse_missing` too.

    Raises:
        SamebitsError: `record-unwritable`.
    """
    try:
        record.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=record.parent):
            pass
        for folder in record.parents:
            if folder.name == DEFAULT_FOLDER.name and not folder.is_symlink():
                _keep_out_of_git(folder)
    except OSError as error:
        message = f"cannot write {record}: {error.strerror}; give another place for records"
        raise SamebitsError(message, slug="record-unwritable") from None


def refuse_missing(folder: Path, wanted: Path | None = None) -> None:
    """Refuse a place whose folder is not there: only the last part of what a user named is made.

    Args:
        folder: the one that is to hold what was named.
        wanted: what was named, for the message.

    Raises:
        SamebitsError: `record-unwritable`.
    """
    if not folder.is_dir():
        found = "is no folder" if os.path.lexists(folder) else "does not exist"
        what = f"cannot write {wanted}: " if wanted is not None else ""
        message = f"{what}the folder {folder} {found}; make it first, or give another place"
        raise SamebitsError(message, slug="record-unwritable")


def check_named(record: Path) -> None:
    """Refuse the path of a record that a user named, where no regular file can be written.

    Raises:
        SamebitsError: its folder is not there, or it is a device, a link, a FIFO, …; `record-unwritable`.
    """
    refuse_missing(record.parent, record)
    try:
        files.refuse_irregular(record)
    except OSError as error:
        message = f"cannot write {record}: {error.strerror}; give another --record"
        raise SamebitsError(message, slug="record-unwritable") from None


def _keep_out_of_git(folder: Path) -> None:
    """Records are not meant for a repository; what has the name already stays as it is."""
    try:
        descriptor = files.create(folder / ".gitignore", mode=files.SHARED)
    except FileExistsError:
        return
    with os.fdopen(descriptor, "wb") as file:
        file.write(b"*\n")
