"""More scripts that do under `samebits run` what they do in bare Python: output, status and files.

Coverage runs the same scripts beside it: there is no row in which it does better.
"""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING

import pytest
from fidelity_more_rows import MORE
from fidelity_rows import DIFFERENT, Row
from fidelity_support import seen, work_folder, write

if TYPE_CHECKING:
    from pathlib import Path

Seen = tuple[tuple[bytes, bytes, int], dict[str, bytes]]


def ran(row: Row, folder: Path, way: str) -> Seen:
    """What a script prints and leaves, from the same beginning each time."""
    shutil.rmtree(folder.parent / "work", ignore_errors=True)
    shutil.rmtree(folder.parent / "cli", ignore_errors=True)
    place = work_folder(folder.parent)
    write(row, place)
    result = seen(row, place, way)
    files = [path for path in sorted(place.rglob("*")) if path.is_file() and "__pycache__" not in path.parts]
    return result, {str(path.relative_to(place)): path.read_bytes() for path in files}


@pytest.mark.parametrize("row", MORE, ids=lambda row: row.name)
def test_same_as_bare_python(row: Row, tmp_path: Path) -> None:
    """Standard output, errors, status and files; where that is so, coverage cannot do better."""
    if sys.version_info < row.since:
        pytest.skip(f"new in Python {row.since}")
    folder = tmp_path.resolve() / "work"
    expected = ran(row, folder, "bare")
    assert ran(row, folder, "command") == expected


@pytest.mark.parametrize("row", DIFFERENT, ids=lambda row: row.name)
def test_coverage_does_no_better(row: Row, tmp_path: Path) -> None:
    """Where samebits is known to differ, coverage does too."""
    folder = tmp_path.resolve() / "work"
    assert ran(row, folder, "coverage") != ran(row, folder, "bare")
