"""Writing a patch to the user's files: all of them, or none."""

from __future__ import annotations

import contextlib
import os
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING

from samebits._text import files
from samebits.errors import SamebitsError

if TYPE_CHECKING:
    from pathlib import Path

    from samebits.diagnosis.patches.edits import PatchedFile
    from samebits.verification.results import Fix

DIFF_NAME = "fix.diff"


def write_diff(fix: Fix, folder: Path) -> Fix:
    """Write the diff beside the records.

    Raises:
        SamebitsError: it cannot be written; `record-unwritable`.
    """
    if fix.patch is None:
        return fix
    path = folder / DIFF_NAME
    try:
        files.write_whole(path, fix.diff)
    except OSError as error:
        message = f"cannot write {path}: {error.strerror}; give another --keep"
        raise SamebitsError(message, slug="record-unwritable") from None
    return replace(fix, diff_file=str(path))


def apply(fix: Fix) -> Fix:
    """Write the patched files, each in one step; where one cannot be written, those before it are put back.

    Raises:
        SamebitsError: a file has changed since (`fix-file-changed`), is outside of the project
            (`fix-outside-project`), or cannot be written (`fix-unwritable`). Then no file is changed.
    """
    if fix.patch is None:
        return fix
    for file in fix.patch.files:
        _check(file, fix.root)
    done: list[PatchedFile] = []
    try:
        for file in fix.patch.files:
            _replace(file.after.path, file.after.data)
            done.append(file)
    except OSError as error:
        for file in done:
            with contextlib.suppress(OSError):
                _replace(file.before.path, file.before.data)
        raise _unwritable(fix.patch.files[len(done)].after.path, error) from None
    return replace(fix, applied=True)


def _check(file: PatchedFile, root: str) -> None:
    path = os.path.realpath(file.before.path)
    if os.path.commonpath([os.path.realpath(root), path]) != os.path.realpath(root):
        message = f"{path} is not in the project {root}: not changed; apply the diff by hand"
        raise SamebitsError(message, slug="fix-outside-project")
    try:
        with files.open_to_read(path) as now:
            data = now.read()
    except OSError as error:
        raise _unwritable(path, error) from None
    if data != file.before.data:
        message = f"{path} was changed while its patch was tried: nothing was applied; run verify --fix again"
        raise SamebitsError(message, slug="fix-file-changed")
    if not os.access(path, os.W_OK) or not os.access(os.path.dirname(path), os.W_OK):
        raise _unwritable(path, PermissionError(13, "Permission denied"))


def _unwritable(path: str, error: OSError) -> SamebitsError:
    message = f"cannot write {path}: {error.strerror}; no file was changed, the diff is beside the records"
    return SamebitsError(message, slug="fix-unwritable")


def _replace(path: str, data: bytes) -> None:
    """Put other contents in the place of a file in one step; a link stays one, and the mode stays."""
    path = os.path.realpath(path)
    temporary = os.path.join(os.path.dirname(path), f".samebits-{os.getpid()}-{os.path.basename(path)}")
    try:
        with os.fdopen(files.create(temporary), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        shutil.copymode(path, temporary)
        files.put_in_place(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.remove(temporary)
        raise
