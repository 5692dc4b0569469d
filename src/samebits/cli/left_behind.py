"""What a command that is interrupted leaves behind."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from samebits.recording.naming import SUFFIX

if TYPE_CHECKING:
    import argparse
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Results:
    """The folder into which a command writes what it records.

    Args:
        folder: may not be there yet.
        pattern: of the files.
        is_new: whether it was not there before the command.
    """

    folder: Path
    pattern: str
    is_new: bool


def announce(options: argparse.Namespace, folder: Path, pattern: str = f"**/*{SUFFIX}") -> None:
    """Note where a command is about to record something.

    Args:
        options: of the command.
        folder: into which it writes.
        pattern: of the files.
    """
    options.results = (*_announced(options), Results(folder, pattern, is_new=not folder.exists()))


def is_anything_kept(options: argparse.Namespace) -> bool:
    """Tell whether an interrupted command has recorded something; a folder without anything is removed."""
    kept = [any(each.folder.glob(each.pattern)) for each in _announced(options)]
    for each in _announced(options):
        if each.is_new:
            with suppress(OSError):  # it is not empty, or not there
                each.folder.rmdir()
    return any(kept)


def _announced(options: argparse.Namespace) -> tuple[Results, ...]:
    results: tuple[Results, ...] = getattr(options, "results", ())
    return results
