"""Who wrote a setting: the line that did it, and the line of the user's code that led there."""

from __future__ import annotations

import functools
import os
import sysconfig
from typing import TYPE_CHECKING, NamedTuple

from samebits.hooks.frames import LIBRARY, USER, FrameRanks, Site, nearest_site, site_of

if TYPE_CHECKING:
    from types import CodeType, FrameType

# What these modules write is control itself, not the script.
_OWN_MODULES = (
    "switch_handles",
    "rng",
    "rng_sources",
    "source_states",
    "waiting",
    "live",
    "streams",
    "workers",
    "processes",
)


class Writer(NamedTuple):
    """Who wrote.

    Args:
        site: the nearest line of the user's code.
        by: the line of an installed library that wrote, when it was not the user's own.
        own: samebits itself wrote.
        direct: the user's code wrote, or called a function of a library that did nothing but write.
        torch: torch wrote, whoever called it.
    """

    site: Site | None
    by: Site | None = None
    own: bool = False
    direct: bool = False
    torch: bool = False


class Writers:
    """Finds who writes, from stack frames."""

    def __init__(self) -> None:
        self._home = os.path.dirname(os.path.abspath(__file__)) + os.sep
        self._transparent: dict[CodeType, bool] = {}

    @functools.cached_property
    def _ranks(self) -> FrameRanks:
        return FrameRanks()

    @functools.cached_property
    def _stdlib(self) -> str:
        return os.path.realpath(sysconfig.get_paths()["stdlib"]) + os.sep

    def of(self, frame: FrameType | None) -> Writer:
        """Who wrote, given the frame that called the setter."""
        library: FrameType | None = None
        count = 0
        torch = self._is_torch(frame)
        while frame is not None:
            if library is None and self._is_own(frame.f_code):
                return Writer(None, own=True)
            rank = self._ranks.of(frame)
            if rank == USER:
                break
            if rank == LIBRARY and not self._is_machinery(frame.f_code):
                library = library or frame
                count += 1
            frame = frame.f_back
        by = None if library is None else site_of(library.f_code, library.f_lineno)
        site = by if frame is None else nearest_site(self._ranks, frame)
        return Writer(site, by, direct=frame is not None and count <= 1, torch=torch)

    def _is_torch(self, frame: FrameType | None) -> bool:
        while frame is not None and self._is_machinery(frame.f_code):
            frame = frame.f_back  # `os` itself
        return frame is not None and str(frame.f_globals.get("__name__", "")).startswith("torch.")

    def _is_own(self, code: CodeType) -> bool:
        if not code.co_filename.startswith(self._home):
            return False
        first = code.co_filename[len(self._home) :].split(os.sep)[0]
        return first.removesuffix(".py") in _OWN_MODULES

    def _is_machinery(self, code: CodeType) -> bool:
        """Whether it is Python's own library: `contextlib` and `os` write for whoever called them."""
        known = self._transparent.get(code)
        if known is None:
            path = os.path.realpath(code.co_filename)
            known = path.startswith(self._stdlib) and "site-packages" not in path[len(self._stdlib) :]
            known = known or code.co_filename.startswith("<frozen ")
            self._transparent[code] = known
        return known
