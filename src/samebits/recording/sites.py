"""Finding the line of the user's code that caused an event."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from samebits.hooks.frames import ENGINE, LIBRARY, OPTIMIZER, OWN, USER, FrameRanks, Site, site_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, FrameType


class SiteFinder:
    """Maps stack frames to sites, each (code object, line) once.

    Args:
        intern: stores a site and gives its id.
        moved: a folder and what it is called in sites: the user's own, of which it is a copy.
    """

    def __init__(self, intern: Callable[[Site], int], moved: tuple[str, str] | None = None) -> None:
        self._moved = moved
        self._intern = intern
        self._ranks = FrameRanks()
        self._ids: dict[tuple[int, int], int] = {}
        self._by_id: dict[int, Site] = {}
        # The answer for frames right in the autograd engine, and right in an optimizer, while one call of
        # them runs in one thread: it saves the walk for half of all ops.
        self.engine_site: int | None = None
        self.optimizer_site: int | None = None

    def find(self, frame: FrameType | None) -> int | None:
        """The id of the nearest site at or above `frame`; None when only torch is on the stack."""
        rank_of = self._ranks.known
        library: FrameType | None = None
        if frame is not None:
            rank = rank_of.get(id(frame.f_code))
            if rank == ENGINE and self.engine_site is not None:
                return self.engine_site
            if rank == OPTIMIZER and self.optimizer_site is not None:
                return self.optimizer_site
        while frame is not None:
            code = frame.f_code
            rank = rank_of.get(id(code))
            if rank is None:
                rank = self._ranks.learn(code)
            if rank == USER:
                return self._site(code, frame.f_lineno)
            if rank == LIBRARY and library is None:
                library = frame
            frame = frame.f_back
        return None if library is None else self._site(library.f_code, library.f_lineno)

    def known(self, identity: int | None) -> Site | None:
        """The site that has an id."""
        return None if identity is None else self._by_id.get(identity)

    def is_own(self, frame: FrameType) -> bool:
        """Whether a frame belongs to torch or samebits."""
        return self._ranks.of(frame) <= OWN

    def _named(self, site: Site) -> Site:
        if self._moved is None or not site.file.startswith(self._moved[0] + os.sep):
            return site
        return Site(self._moved[1] + site.file[len(self._moved[0]) :], site.line, site.function)

    def _site(self, code: CodeType, line: int) -> int:
        key = (id(code), line)
        found = self._ids.get(key)
        if found is None:
            site = self._named(site_of(code, line))
            found = self._ids[key] = self._intern(site)
            self._by_id[found] = site
        return found
