"""Finding the line of the user's code that caused an event."""

from __future__ import annotations

import os
import sysconfig
from typing import TYPE_CHECKING

from samebits.recording.events import Site
from samebits.recording.torch_private import ENGINE_FUNCTION

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, FrameType

_ENGINE = -2  # torch's call into its autograd engine
_OPTIMIZER = -1  # torch's optimizers
_OWN = 0  # torch, samebits, the interpreter's own machinery: never a site
_LIBRARY = 1  # an installed library: a site when no user code is on the stack
_USER = 2


class SiteFinder:
    """Maps stack frames to sites, each (code object, line) once.

    Args:
        intern: stores a site and gives its id.
    """

    def __init__(self, intern: Callable[[Site], int]) -> None:
        self._intern = intern
        # Keyed by id: hashing a code object hashes its contents. `_kept` keeps the ids from being reused.
        self._rank: dict[int, int] = {}
        self._ids: dict[tuple[int, int], int] = {}
        self._kept: list[CodeType] = []
        self._by_id: dict[int, Site] = {}
        # The answer for frames right in the autograd engine, and right in an optimizer, while one call of
        # them runs in one thread: it saves the walk for half of all ops.
        self.engine_site: int | None = None
        self.optimizer_site: int | None = None
        package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        paths = sysconfig.get_paths()
        libraries = {paths[key] for key in ("stdlib", "platstdlib", "purelib", "platlib")}
        self._own = (package + os.sep,)
        self._libraries = tuple(sorted({os.path.realpath(path) + os.sep for path in libraries}))

    def find(self, frame: FrameType | None) -> int | None:
        """The id of the nearest site at or above `frame`; None when only torch is on the stack."""
        rank_of = self._rank
        library: FrameType | None = None
        if frame is not None:
            rank = rank_of.get(id(frame.f_code))
            if rank == _ENGINE and self.engine_site is not None:
                return self.engine_site
            if rank == _OPTIMIZER and self.optimizer_site is not None:
                return self.optimizer_site
        while frame is not None:
            code = frame.f_code
            rank = rank_of.get(id(code))
            if rank is None:
                rank = self._learn(code)
            if rank == _USER:
                return self._site(code, frame.f_lineno)
            if rank == _LIBRARY and library is None:
                library = frame
            frame = frame.f_back
        return None if library is None else self._site(library.f_code, library.f_lineno)

    def known(self, identity: int | None) -> Site | None:
        """The site that has an id."""
        return None if identity is None else self._by_id.get(identity)

    def is_own(self, frame: FrameType) -> bool:
        """Whether a frame belongs to torch or samebits."""
        rank = self._rank.get(id(frame.f_code))
        return (self._learn(frame.f_code) if rank is None else rank) <= _OWN

    def _learn(self, code: CodeType) -> int:
        self._kept.append(code)
        rank = self._classify(code.co_filename)
        if rank == _OWN and code.co_name == ENGINE_FUNCTION:
            rank = _ENGINE
        self._rank[id(code)] = rank
        return rank

    def _site(self, code: CodeType, line: int) -> int:
        key = (id(code), line)
        found = self._ids.get(key)
        if found is None:
            name = getattr(code, "co_qualname", code.co_name)  # co_qualname is new in Python 3.11
            site = Site(os.path.abspath(code.co_filename), line, name)
            found = self._ids[key] = self._intern(site)
            self._by_id[found] = site
        return found

    def _classify(self, filename: str) -> int:
        if filename.startswith("<") and not filename.startswith(("<stdin", "<ipython", "<cell")):
            return _OWN
        path = os.path.realpath(filename)
        if path.startswith(self._own):
            return _OWN
        parts = path.split(os.sep)
        for place in ("site-packages", "dist-packages"):
            if place in parts:
                top, below = (*parts[parts.index(place) + 1 :], "")[:2]
                if top not in ("torch", "functorch", "torchgen"):
                    return _LIBRARY
                return _OPTIMIZER if (top, below) == ("torch", "optim") else _OWN
        return _LIBRARY if path.startswith(self._libraries) else _USER
