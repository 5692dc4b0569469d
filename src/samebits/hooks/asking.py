"""For whose code something outside torch is asked: the user's, a library's, or nobody's of interest."""

from __future__ import annotations

import os
import random
import sys
from typing import TYPE_CHECKING

from samebits.hooks.frames import LIBRARY, OWN, USER, FrameRanks
from samebits.package import FOLDER

if TYPE_CHECKING:
    from collections.abc import Collection
    from types import FrameType

HANDING_ON = frozenset({"random", "secrets", "uuid", "tempfile", "os", "glob", "pathlib"})
"""Parts of the standard library that ask for whoever calls them.

What others ask is for their own use: names of sockets, keys between processes, intervals.
"""
_OWN = FOLDER + os.sep
# Modules of samebits whose functions stand in the place of others and call them.
_STANDING = ("samebits.recording.probes.draw", "samebits.determinism.pins", "samebits.determinism.generators")


class Asker:
    """Finds for whose code a function was called.

    Args:
        ranks: what is known of code; it can be shared.
        handing_on: top names of the modules of the standard library that ask for whoever calls them.
    """

    def __init__(self, ranks: FrameRanks | None = None, handing_on: Collection[str] = HANDING_ON) -> None:
        self.ranks = ranks or FrameRanks()
        self._handing_on = handing_on

    def find(
        self, frame: FrameType | None, op: str = "", *, through: bool = False
    ) -> tuple[FrameType, str] | None:
        """The code for which a value is asked, and the function that it called; None for housekeeping.

        Args:
            frame: what called.
            op: the function; one of the standard library that asked for it goes before.
            through: frames of samebits right at the beginning are other wrappers.
        """
        while through and frame is not None and frame.f_code.co_filename.startswith(_OWN):
            frame = frame.f_back
        if self.ranks.learning:
            return None
        while frame is not None:
            rank = self.ranks.of(frame)
            name = str(frame.f_globals.get("__name__", ""))
            if rank == USER:
                return frame, op
            if not is_standard(name):
                imported = rank <= OWN or self.ranks.is_imported(frame)
                return None if imported else (frame, op)
            if name.partition(".")[0] not in self._handing_on:
                return None
            function = _name_of(frame).removesuffix(".__init__")
            if not function.startswith("_"):
                op = f"{name.partition('.')[0]}.{function}"
            frame = frame.f_back
        return None

    def is_user(self, frame: FrameType | None) -> bool:
        """Whether the user's own code called, what stands in between aside."""
        frame = None if self.ranks.learning else caller(frame)
        return frame is not None and self.ranks.of(frame) == USER

    def is_direct(self, frame: FrameType | None) -> bool:
        """Whether the user's code, or an installed library that is not only being imported, called.

        What stands in between aside.
        """
        frame = None if self.ranks.learning else caller(frame)
        rank = OWN if frame is None else self.ranks.of(frame)
        if frame is None or rank == USER:
            return rank == USER
        standard = is_standard(str(frame.f_globals.get("__name__", "")))
        return rank == LIBRARY and not standard and not self.ranks.is_imported(frame)

    def is_asked(self, frame: FrameType | None) -> bool:
        """Whether user code or a library on its behalf asks, what stands in between aside."""
        return self.find(caller(frame)) is not None

    def is_user_asked(self, frame: FrameType | None) -> bool:
        """Whether user code asks, possibly by way of the modules that hand on."""
        found = self.find(caller(frame))
        return found is not None and self.ranks.of(found[0]) == USER


def caller(frame: FrameType | None) -> FrameType | None:
    """That frame, or the first one below that is not of a function that samebits put in another's place."""
    while frame is not None and str(frame.f_globals.get("__name__", "")).startswith(_STANDING):
        frame = frame.f_back
    return frame


def is_standard(module: str) -> bool:
    """Whether a module belongs to the standard library, by its name."""
    return module.partition(".")[0] in sys.stdlib_module_names


def _name_of(frame: FrameType) -> str:
    code = frame.f_code
    if isinstance(frame.f_locals.get("self"), random.SystemRandom):  # which inherits what it draws with
        return f"SystemRandom.{code.co_name}"
    if hasattr(code, "co_qualname"):  # new in Python 3.11
        return str(code.co_qualname)
    owner = frame.f_locals.get("self")
    return code.co_name if owner is None else f"{type(owner).__name__}.{code.co_name}"
