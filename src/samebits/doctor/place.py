"""The folder where records would go, and the repository there. Nothing is left behind by looking."""

from __future__ import annotations

import os
import shutil
import tempfile
from typing import TYPE_CHECKING

from samebits.doctor.surroundings import Place
from samebits.environment.software import collect_source
from samebits.recording.naming import DEFAULT_FOLDER

if TYPE_CHECKING:
    from pathlib import Path


def look_at_place(directory: Path, source: Path) -> Place:
    """Try to write where records go, and ask git.

    Args:
        directory: the working directory.
        source: folder of the script.
    """
    folder = directory / DEFAULT_FOLDER
    return Place(str(folder), _why_unwritable(folder), _free_bytes(directory), _ask_git(source))


def _why_unwritable(folder: Path) -> str:
    """Records go there; the folder itself is made by the first of them."""
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
