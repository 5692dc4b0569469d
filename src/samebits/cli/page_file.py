"""Write a page: checked before the work begins, whole or not at all."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from samebits._text import files
from samebits._text.printable import printable
from samebits.cli.terminal import write
from samebits.errors import SamebitsError

if TYPE_CHECKING:
    import argparse

    from samebits.report.html.document import Page

_OWN = b'<meta name="generator" content="samebits'
_HEAD = 2000  # bytes of a page in which the above is


def add_html(parser: argparse._ActionsContainer) -> None:
    """Add `--html FILE`."""
    parser.add_argument(
        "--html", metavar="FILE", help="write the report as one HTML page that needs no network, too"
    )


def check_page(path: str) -> Path:
    """Refuse a path where no page can be written; a page that samebits wrote is replaced.

    Raises:
        SamebitsError: `report-unwritable`, or `report-exists` where another file would be lost.
    """
    file = Path(path)
    if not path:
        raise SamebitsError(
            "the path of the page is empty; expected the path of a file", slug="report-unwritable"
        )
    folder = file.absolute().parent
    if not folder.is_dir():
        problem = "is no folder" if os.path.lexists(folder) else "does not exist"
        raise _unwritable(file, f"the folder {folder} {problem}")
    if not os.access(folder, os.W_OK):
        raise _unwritable(file, f"the folder {folder} cannot be written")
    try:
        exists = files.refuse_irregular(file)
        own = exists and _is_own(file)
    except OSError as error:
        raise _unwritable(file, str(error.strerror or error)) from None
    if exists and not own:
        raise SamebitsError(
            f"{file} exists and is not a page of samebits; give another path, or remove it",
            slug="report-exists",
        )
    return file


def _is_own(file: Path) -> bool:
    with files.open_to_read(file) as opened:
        return _OWN in opened.read(_HEAD)


def _unwritable(file: Path, why: str) -> SamebitsError:
    return SamebitsError(f"cannot write {file}: {why}; give another path", slug="report-unwritable")


def write_page(page: Page, file: Path) -> None:
    """Write a page, and say so on stderr.

    Raises:
        SamebitsError: `report-unwritable`; `report-exists` where another file has come there meanwhile.
    """
    from samebits.report.html.render import render
    from samebits.report.html.sharing import shareable

    check_page(str(file))
    data = render(shareable(page, os.getcwd())).encode("utf-8", "backslashreplace")
    try:
        files.write_whole(file, data, mode=files.SHARED)
    except OSError as error:
        raise _unwritable(file, str(error.strerror or error)) from None
    write(f"samebits: page written to {printable(str(file))} ({max(1, len(data) // 1000)} kB)", sys.stderr)
