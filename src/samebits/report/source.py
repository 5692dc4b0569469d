"""The user's own source lines.

A record names files, and it may come from a stranger. So a line is shown only of Python source: of a regular
file below the working folder, or, where the runs were made here, of wherever the user's script lies.
"""

from __future__ import annotations

import io
import itertools
import os
import tokenize
from dataclasses import dataclass
from typing import TYPE_CHECKING

from samebits import files
from samebits.printable import printable

if TYPE_CHECKING:
    from samebits.hooks.frames import Site

_SUFFIXES = (".py", ".pyw", ".pyx", ".pyi", ".ipynb")
_MOST_BYTES = 4 << 20  # of a source file
_MOST_LINES = 1_000_000
_LONGEST_LINE = 2_000


@dataclass(frozen=True)
class Sources:
    """Whose source lines may be shown.

    Args:
        folder: the working folder; paths are shown relative to it.
        own: the sites are of runs that this command made, not of records that it was given.
    """

    folder: str
    own: bool = False


def source_line(site: Site, sources: Sources) -> str:
    """The line's text without its indentation; empty when the file is not here or may not be shown."""
    try:
        path = _allowed(site.file, sources)
        if not path or not 0 < site.line <= _MOST_LINES:
            return ""
        with files.open_to_read(path, follow=False) as file:
            data = file.read(_MOST_BYTES)
        text = _line(data, site.line)
    except (OSError, ValueError, SyntaxError, LookupError):  # a name with a NUL, an unknown encoding
        return ""
    return printable(text.strip()[:_LONGEST_LINE])


def _allowed(name: str, sources: Sources) -> str:
    """The real path of a file that may be shown; empty for another one."""
    if not os.path.isabs(name):
        return ""
    path, folder = os.path.realpath(name), os.path.realpath(sources.folder)
    if sources.own:
        return path
    inside = os.path.relpath(path, folder)
    parts = inside.split(os.sep)
    hidden = any(part.startswith(".") for part in parts)  # `..` too
    return path if inside.endswith(_SUFFIXES) and not hidden else ""


def _line(data: bytes, number: int) -> str:
    """The line of that number, from 1, as Python counts them."""
    encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    lines = io.TextIOWrapper(io.BytesIO(data), encoding=encoding, errors="replace")
    return next(itertools.islice(lines, number - 1, None), "")


def place(site: Site, folder: str) -> str:
    """`train.py:12 in main`, the path relative to `folder` where that is shorter."""
    path = site.file
    inside = os.path.relpath(path, folder) if os.path.isabs(path) else path
    shown = path if inside.startswith("..") else inside
    function = "" if site.function in ("", "<module>") else f" in {site.function}"
    return printable(f"{shown}:{site.line}{function}")
