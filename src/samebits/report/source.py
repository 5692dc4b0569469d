"""The user's own source lines."""

from __future__ import annotations

import linecache
import os
from typing import TYPE_CHECKING

from samebits.report.style import printable

if TYPE_CHECKING:
    from samebits.hooks.frames import Site


def source_line(site: Site) -> str:
    """The line's text without its indentation; empty when the file is not here or has changed."""
    return printable(linecache.getline(site.file, site.line).strip())


def place(site: Site, folder: str) -> str:
    """`train.py:12 in main`, the path relative to `folder` where that is shorter."""
    path = site.file
    inside = os.path.relpath(path, folder) if os.path.isabs(path) else path
    shown = path if inside.startswith("..") else inside
    function = "" if site.function in ("", "<module>") else f" in {site.function}"
    return printable(f"{shown}:{site.line}{function}")
