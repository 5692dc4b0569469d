"""What the programs of this folder have in common: rows of a table, kept in a file as they are found."""

from __future__ import annotations

import json
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

Row = dict[str, Any]


class Part:
    """Rows and failures of one program, written to a file after each, so that a time limit loses nothing.

    Args:
        name: of the file, without its ending.
        folder: where it is written.
    """

    def __init__(self, name: str, folder: Path) -> None:
        self._path = folder / f"{name}.json"
        self._content: dict[str, Any] = {"notes": {}, "rows": [], "failures": [], "seconds": {}}
        self._start = time.perf_counter()
        self._save()

    @property
    def rows(self) -> list[Row]:
        """All rows so far."""
        return list(self._content["rows"])

    @property
    def failures(self) -> list[Row]:
        """What failed, and how."""
        return list(self._content["failures"])

    def note(self, **facts: Any) -> None:
        """Keep facts about the whole program."""
        self._content["notes"] |= facts
        self._save()

    def row(self, **columns: Any) -> None:
        """Keep one row."""
        self._content["rows"].append(columns)
        self._save()

    def attempt(self, name: str, work: Callable[[], None]) -> None:
        """Do something; if it fails, keep the error and go on."""
        start = time.perf_counter()
        try:
            work()
        except Exception as error:  # noqa: BLE001 - one failure must not take the other results with it
            self._content["failures"].append(
                {"what": name, "error": f"{type(error).__name__}: {error}", "trace": traceback.format_exc()}
            )
        self._content["seconds"][name] = round(time.perf_counter() - start, 2)
        self._save()

    def _save(self) -> None:
        self._content["seconds"]["all"] = round(time.perf_counter() - self._start, 2)
        self._path.write_text(json.dumps(self._content, indent=1, default=str), encoding="utf-8")


def run_part(
    name: str, parser: argparse.ArgumentParser, work: Callable[[Part, argparse.Namespace], None]
) -> None:
    """Parse arguments, work, print the table; the status is 1 if something failed."""
    parser.add_argument("--out", type=Path, required=True, help="folder for the results")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    part = Part(name, arguments.out)
    part.attempt("all of it", lambda: work(part, arguments))
    print(table(part.rows))
    for failure in part.failures:
        print(f"failed: {failure['what']}: {failure['error']}")
    raise SystemExit(1 if part.failures else 0)


def table(rows: list[Row]) -> str:
    """Return rows as text, a column for each key."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    cells = [columns, *([_cell(row.get(column, "")) for column in columns] for row in rows)]
    widths = [max(len(line[i]) for line in cells) for i in range(len(columns))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in cells
    )


def _cell(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
