"""What the user's line called of a library that drew for it, and how that function is given a seed."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from samebits.hooks.asking import is_standard
from samebits.hooks.frames import LIBRARY, USER

if TYPE_CHECKING:
    from types import CodeType, FrameType

    from samebits.hooks.frames import FrameRanks

SEEDS = ("seed", "random_state", "random_seed", "rng")
"""Parameters by which libraries take a seed, the likeliest first."""
_TEXT = re.compile(r"([\w.]+)\((\w*)\)")
_ANY = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS


@dataclass(frozen=True, slots=True)
class LibraryCall:
    """A function of a library that the user's line called, or the class of the object that it was asked of.

    Args:
        function: its full name, such as `sklearn.cluster._kmeans.KMeans`.
        parameter: which of its parameters takes a seed; empty where none is known to.
    """

    function: str
    parameter: str = ""

    @property
    def name(self) -> str:
        """How it is called in a program: the last part of its name."""
        return self.function.rpartition(".")[2]

    @property
    def package(self) -> str:
        """The package that it belongs to."""
        return self.function.partition(".")[0]

    def to_text(self) -> str:
        """`package.module.function(parameter)`."""
        return f"{self.function}({self.parameter})"

    @classmethod
    def from_text(cls, text: str) -> LibraryCall | None:
        """The inverse of `to_text`; None for any other text."""
        found = _TEXT.fullmatch(text)
        return cls(found[1], found[2]) if found else None


def library_call(ranks: FrameRanks, frame: FrameType | None) -> LibraryCall | None:
    """What the user's line called of a library; None where it drew without one.

    Functions that only hand their arguments on, such as decorators make, are looked through.

    Args:
        ranks: what is known of code.
        frame: what drew.
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
        found = _of_frame(inner, module)
        if found.parameter:
            return found
        first = first or found
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
