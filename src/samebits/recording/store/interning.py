"""Values that repeat are written once and referred to by number."""

from __future__ import annotations

import itertools
from collections.abc import Hashable
from typing import Any, Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)

REMEMBERED_BYTES = 6_000_000


class Interned(Generic[Key]):
    """Numbers given to the values of one table, in bounded memory.

    What is remembered is forgotten as a whole when it grows too large: a value met again is then written
    again under a new number, which readers cannot tell from the old one. Threads that meet a new value at the
    same moment do the same, so no lock is needed.

    Attributes:
        ids: the numbers of the values remembered.
        pending: rows not yet written, number first.
    """

    def __init__(self) -> None:
        self.ids: dict[Key, int] = {}
        self.pending: list[tuple[Any, ...]] = []
        self._numbers = itertools.count()
        self._room = REMEMBERED_BYTES

    def add(self, key: Key, row: tuple[Any, ...], size: int) -> int:
        """Return a new number for a value.

        Args:
            key: the value.
            row: its columns, without the number.
            size: bytes of memory that remembering it costs, about.
        """
        if self._room < size:
            self.ids.clear()
            self._room = REMEMBERED_BYTES
        self._room -= size
        number = next(self._numbers)
        self.pending.append((number, *row))  # before it is known: an event may refer to it at once
        self.ids[key] = number
        return number
