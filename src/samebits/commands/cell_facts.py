"""What a notebook's cell can reach and nobody can put back before the cell runs again."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto


class Left(Enum):
    """A kind of object that stays as a run has left it."""

    ITERATOR = auto()
    """An iterator, a generator or a coroutine: how far it is."""
    FILE = auto()
    """An open file: its position."""
    CACHE = auto()
    """A function with a cache."""
    GRAPH = auto()
    """A tensor with a graph, which a backward pass frees."""
    OPAQUE = auto()
    """An object whose class raises an error when its contents are copied or put back."""
    TOO_MANY = auto()
    """More objects than are looked at."""


@dataclass(frozen=True)
class NotRestored:
    """An object that is not put back.

    Args:
        variable: by which the cell reaches it.
        kind: what it is.
    """

    variable: str
    kind: Left
