"""Enumerations whose members are texts."""

from __future__ import annotations

from enum import Enum


class StrEnum(str, Enum):
    """A closed list of texts: a member is written, compared and stored as its value.

    `enum.StrEnum`, which Python 3.10 lacks.
    """

    __str__ = str.__str__
    __format__ = str.__format__  # type: ignore[assignment]  # Enum types it as a method

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        # Python 3.11 reaches a member through a descriptor, five times as slow as an attribute.
        for name, member in cls._member_map_.items():
            type.__setattr__(cls, name, member)
