"""Names that recording gives: of records, of their folders, of what a state log holds."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from samebits.recording.runner import Target

DEFAULT_FOLDER = Path(".samebits")
SUFFIX = ".sbr"
FOLDER_SUFFIX = ".ranks"  # of the folder with the records of all ranks of a distributed run
CHILDREN_SUFFIX = ".children"  # of the folder with the records of the processes that a run started
LOADER_GENERATOR = "the loader's"
"""The name of a loader's own generator in the state log."""


def target_name(target: Target) -> str:
    """Return a file name made from the script's or module's name."""
    name = Path(target.script).stem if target.script is not None else str(target.module)
    return re.sub(r"[^\w.-]+", "_", name).strip(".") or "script"


def children_folder(record: str) -> Path:
    """Return the folder with the records of a process's children."""
    return Path(os.path.abspath(record)).with_suffix(CHILDREN_SUFFIX)


def child_record(record: str, name: str) -> str:
    """Return the path of the record of a child; the name of a child of a child is `child/of-child`."""
    path = record
    for part in name.split("/"):
        path = str(children_folder(path) / f"{part}{SUFFIX}")
    return path


def next_free(folder: Path, stem: str, suffix: str = "", least: int = 1) -> Path:
    """Return `folder/stem-N` + suffix with the first N beyond every one in use, and not below `least`."""
    return folder / f"{stem}-{max(least, _next_number(folder, stem, suffix))}{suffix}"


def make_next_free(folder: Path, stem: str) -> Path:
    """Make the folder `folder/stem-N` with the first N beyond every one in use, and return its path.

    Several processes may ask at once: each gets a folder of its own.

    Raises:
        OSError: it cannot be made.
    """
    for number in itertools.count(_next_number(folder, stem)):
        path = folder / f"{stem}-{number}"
        with contextlib.suppress(FileExistsError):  # another process was first
            path.mkdir()
            return path
    raise AssertionError("numbers have no end")  # for the type checker


def _next_number(folder: Path, stem: str, suffix: str = "") -> int:
    used = [0]
    if folder.is_dir():
        pattern = re.compile(re.escape(stem) + r"-(\d+)" + re.escape(suffix))
        matches = (pattern.fullmatch(entry.name) for entry in folder.iterdir())
        used += [int(match[1]) for match in matches if match]
    return max(used) + 1


_WRAPPERS = frozenset({"_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module"})
ROOT = "(model)"
"""What the outermost module is called; its own path is empty."""


def without_wrappers(path: str) -> str:
    """Return a path without what `torch.compile`, FSDP and checkpointing put into it."""
    return ".".join([part for part in path.split(".") if part not in _WRAPPERS])
