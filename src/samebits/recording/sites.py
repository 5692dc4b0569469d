"""Sites: the line of the user's code that caused an event, and the library function that it called."""

from __future__ import annotations

import inspect
import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from samebits._runtime.frames import (
    ENGINE,
    LIBRARY,
    OPTIMIZER,
    OWN,
    USER,
    FrameRanks,
    Site,
    is_standard,
    site_of,
)

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
        """Return the id of the nearest site at or above `frame`; None when only torch is on the stack."""
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
        """Return the site that has an id."""
        return None if identity is None else self._by_id.get(identity)

    def is_own(self, frame: FrameType) -> bool:
        """Tell whether a frame belongs to torch or samebits."""
        return self._ranks.of(frame) <= OWN

    def _named(self, site: Site) -> Site:
        if self._moved is None or not site.file.startswith(self._moved[0] + os.sep):
            return site
        return Site(self._moved[1] + site.file[len(self._moved[0]) :], site.line, site.function)

    def _site(self, code: CodeType, line: int) -> int:
        key = (id(code), line)
        site_id = self._ids.get(key)
        if site_id is None:
            site = self._named(site_of(code, line))
            site_id = self._ids[key] = self._intern(site)
            self._by_id[site_id] = site
        return site_id


SEEDS = ("seed", "random_state", "random_seed", "rng")
"""Parameters by which libraries take a seed, the likeliest first."""
_TEXT = re.compile(r"([\w.]+)\((\w*)\)")
_ANY = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS


@dataclass(frozen=True, slots=True)
class LibraryCall:
    """A function of a library that the user's line called, or the class whose method was called.

    Args:
        function: its full name, such as `sklearn.cluster._kmeans.KMeans`.
        parameter: which of its parameters takes a seed; empty where none is known to.
    """

    function: str
    parameter: str = ""

    @property
    def name(self) -> str:
        """The name that a program calls it by: the last part of the full name."""
        return self.function.rpartition(".")[2]

    @property
    def package(self) -> str:
        """The package that it belongs to."""
        return self.function.partition(".")[0]

    def to_text(self) -> str:
        """Return `package.module.function(parameter)`."""
        return f"{self.function}({self.parameter})"

    @classmethod
    def from_text(cls, text: str) -> LibraryCall | None:
        """Parse what `to_text` wrote; None for any other text."""
        match = _TEXT.fullmatch(text)
        return cls(match[1], match[2]) if match else None


def library_call(ranks: FrameRanks, frame: FrameType | None) -> LibraryCall | None:
    """Return the library function that the user's line called; None where it drew without one.

    Functions that only hand their arguments on, such as those that decorators make, are skipped.

    Args:
        ranks: tells user code from libraries.
        frame: the frame that drew.
    """
    between: list[FrameType] = []
    while frame is not None and ranks.of(frame) != USER:
        between.append(frame)
        frame = frame.f_back
    if frame is None:
        return None
    first: LibraryCall | None = None
    for inner in reversed(between):
        module = str(inner.f_globals.get("__name__", ""))
        if inner.f_code.co_filename.startswith("<"):  # text that a library compiled, as decorators do
            continue
        if ranks.of(inner) != LIBRARY or is_standard(module):
            break
        call = _of_frame(inner, module)
        if call.parameter:
            return call
        first = first or call
        if inner.f_code.co_flags & _ANY != _ANY:
            break
    return first


def _of_frame(frame: FrameType, module: str) -> LibraryCall:
    code = frame.f_code
    name = f"{module}.{getattr(code, 'co_qualname', code.co_name)}"  # co_qualname is new in Python 3.11
    names = _parameters(code)
    # What takes any keyword names those that it looks for among its constants.
    known = (*names, *(code.co_consts if code.co_flags & inspect.CO_VARKEYWORDS else ()))
    owner = type(frame.f_locals["self"]) if names[:1] == ("self",) and "self" in frame.f_locals else None
    parameter = _first(known)
    if owner is not None and (code.co_name == "__init__" or not parameter):
        made = getattr(inspect.unwrap(owner.__init__), "__code__", None)
        of_class = _first(_parameters(made)) if made is not None else ""
        if of_class or code.co_name == "__init__":
            return LibraryCall(f"{owner.__module__}.{owner.__qualname__}", of_class)
    return LibraryCall(name.replace(".<locals>", ""), parameter)


def _parameters(code: CodeType) -> tuple[str, ...]:
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def _first(names: tuple[object, ...]) -> str:
    return next((seed for seed in SEEDS if seed in names), "")
