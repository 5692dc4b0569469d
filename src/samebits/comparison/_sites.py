"""The line of an event, as it is compared with that of another run."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from samebits._runtime.frames import Site

SiteKey = tuple[str, int, str]
"""File without its folder, line and function."""


@dataclass(frozen=True, slots=True, eq=False)
class PairedSite(Site):
    """A line in code that is not the same in both runs. It equals any other site of that line.

    Args:
        key: the same for a line of the first run and the line of the second that stands for it.
    """

    key: SiteKey = ("", 0, "")

    def __eq__(self, other: object) -> bool:
        """Compare as sites are compared."""
        return isinstance(other, Site) and _plain(self) == _plain(other)

    def __hash__(self) -> int:
        """Return the hash of an equal site."""
        return hash(_plain(self))


def _plain(site: Site) -> SiteKey:
    return site.file, site.line, site.function


def plain_key(site: Site) -> SiteKey:
    """Return a site without its folder: two runs may have been started from copies in two folders."""
    return os.path.basename(site.file), site.line, site.function


def site_key(site: Site | None) -> SiteKey | None:
    """Return the key by which a line is recognised in another run."""
    if site is None:
        return None
    return site.key if type(site) is PairedSite else plain_key(site)


def key_of_second(site: Site) -> SiteKey:
    """Return the key of a line of the second run that stands for none of the first; see `place_of`."""
    file, line, function = plain_key(site)
    return file, -line, function


def place_of(key: Any) -> tuple[str, int] | None:
    """Return the file and the line of a key."""
    return (key[0], abs(key[1])) if key else None


def is_paired(site: Site | None) -> bool:
    """Tell whether a line is in code that is not the same in both runs."""
    return type(site) is PairedSite


def same_line(a: Site | None, b: Site | None) -> bool:
    """Tell whether a reader would call two sites of two runs the same line."""
    return a is b or (a is not None and b is not None and plain_key(a) == plain_key(b))
