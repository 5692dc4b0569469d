"""JSON of a checkpoint that may come from anyone: read within limits, or refused."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from samebits.checkpoint.refusals import DamageError
from samebits.printable import shortened
from samebits.wording import with_article

if TYPE_CHECKING:
    from collections.abc import Sequence

_MOST_DIGITS = 20  # of a number in JSON; whole numbers of a state are hexadecimal text where they are longer
_LONGEST_SHOWN = 200
_MOST_ALIKE = 200  # members of a set whose hashes are the same; each looks at all before it


def load_json(data: bytes | str) -> Any:
    """What a JSON text says.

    Raises:
        DamageError: it is none, has a number that is too long or no number, or a name that comes twice.
    """
    try:
        return json.loads(
            data, parse_int=_whole, parse_constant=_no_constant, object_pairs_hook=_without_repetition
        )
    except (ValueError, RecursionError) as error:
        raise DamageError("its header is no JSON") from error


def shown(value: Any) -> str:
    """A value of the file for a message, not at length."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # a whole number of thousands of digits
        text = with_article(type(value).__name__)
    return shortened(text, _LONGEST_SHOWN)


def refuse_alike(values: Sequence[Any]) -> None:
    """Refuse the members of a set or the keys of a dict, where so many hashes are equal that they take hours.

    Raises:
        DamageError: that.
        TypeError: one of them has no hash.
    """
    hashes = sorted(map(hash, values))
    if any(first == last for first, last in zip(hashes, hashes[_MOST_ALIKE:], strict=False)):
        raise DamageError("it holds a set or a dict whose members were chosen to have the same hash")


def _whole(digits: str) -> int:
    if len(digits) > _MOST_DIGITS:  # converting takes time that grows with the square of their number
        raise DamageError("a whole number in its header has too many digits")
    return int(digits)


def _no_constant(name: str) -> Any:
    raise DamageError(f"its header has {name}, which is no JSON")


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise DamageError("a name comes twice in its header")
    return found
