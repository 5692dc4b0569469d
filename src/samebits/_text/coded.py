"""A code with arguments: how a fact is carried whose sentence is made in `report`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from samebits._text.str_enum import StrEnum

if TYPE_CHECKING:
    from typing_extensions import Self

Code = TypeVar("Code", bound=StrEnum)


@dataclass(frozen=True, slots=True)
class Coded(Generic[Code]):
    """**Base class:** a fact as a code of a closed list.

    Args:
        code: which.
        arguments: as listed with the code: texts, numbers, other frozen values, tuples of these.
    """

    code: Code
    arguments: tuple[Any, ...] = ()

    @classmethod
    def of(cls, code: Code, *arguments: object) -> Self:
        """Return the fact with these arguments."""
        return cls(code, arguments)
