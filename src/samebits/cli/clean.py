"""`samebits clean`."""

from __future__ import annotations

import re
import shutil
import sys
import time
from typing import TYPE_CHECKING

from samebits.cli.command import help_texts
from samebits.cli.script_parser import CommandParser, days
from samebits.cli.terminal import write
from samebits.errors import EXIT_IDENTICAL
from samebits.recording.naming import CHILDREN_SUFFIX, DEFAULT_FOLDER, FOLDER_SUFFIX, SUFFIX
from samebits.records.creation import sidecars
from samebits.records.log import is_written

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence
    from pathlib import Path

_DAY_S = 86400.0
_SUFFIXES = "|".join(map(re.escape, (FOLDER_SUFFIX, CHILDREN_SUFFIX)))
_FOLDER = re.compile(rf".+-(verify|resume)-\d+|.+-\d+({_SUFFIXES})")
_FILE = re.compile(r".+-\d+" + re.escape(SUFFIX))


class CleanCommand:
    """Remove the records in `.samebits` of the working folder.

    Records of `run` and folders of `verify` and `resume-check` are removed; they are recognised by their
    names. Records written elsewhere (`--keep`, `--record`), results of `spread`, and a record that a run is
    writing now are not touched. Exit status: 0, or 2 if something cannot be removed.

    Examples:
      samebits clean
      samebits clean --older-than 7
      samebits clean --dry-run
    """

    name = "clean"
    has_json_errors = False

    def parser(self) -> CommandParser:
        """Return the parser of the words that follow `clean`."""
        parser = CommandParser(**help_texts(self))
        parser.add_argument(
            "--older-than",
            type=days,
            default=0.0,
            metavar="DAYS",
            help="remove only records that were last changed more than DAYS days ago",
        )
        parser.add_argument("--dry-run", action="store_true", help="list the records, but remove nothing")
        return parser

    def parse(self, arguments: Sequence[str]) -> argparse.Namespace:
        """Read the words that follow `clean`."""
        return self.parser().parse_args(list(arguments))

    def run(self, options: argparse.Namespace) -> int:
        """Remove the records, and print each with its size."""
        until = time.time() - options.older_than * _DAY_S
        records = [path for path in _records(DEFAULT_FOLDER) if path.lstat().st_mtime <= until]
        if not records:
            write(f"no records to remove in {DEFAULT_FOLDER}", sys.stdout)
            return EXIT_IDENTICAL
        total = 0
        for path in records:
            if _is_in_use(path):
                write(f"{path}  not removed: a run is writing it", sys.stdout)
                continue
            size = _size(path)
            total += size
            if not options.dry_run:
                _remove(path)
            write(f"{path}  {size / 1e6:.1f} MB", sys.stdout)
        done = "would be removed" if options.dry_run else "removed"
        write(f"{total / 1e6:.1f} MB {done} from {DEFAULT_FOLDER}", sys.stdout)
        return EXIT_IDENTICAL


def _records(folder: Path) -> Iterator[Path]:
    """Yield the records and folders of records in a folder; links are not followed."""
    if folder.is_symlink() or not folder.is_dir():
        return
    for path in sorted(folder.iterdir()):
        if path.is_symlink():
            continue
        name = _FOLDER if path.is_dir() else _FILE
        if name.fullmatch(path.name):
            yield path


def _is_in_use(path: Path) -> bool:
    """Tell whether a running process is writing a record there."""
    return any(is_written(file) for file in _files(path) if file.name.endswith(f"{SUFFIX}-log"))


def _size(path: Path) -> int:
    return sum(file.lstat().st_size for file in _files(path))


def _files(path: Path) -> list[Path]:
    """Return the files of a folder, or a record with its sidecars; links are left out."""
    files = path.rglob("*") if path.is_dir() else (path, *sidecars(path))
    return [file for file in files if file.is_file() and not file.is_symlink()]


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
        return
    for file in (path, *sidecars(path)):
        file.unlink(missing_ok=True)
