"""String literals as they stand in source code, in patches of it and in the JSON of notebooks."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

SPACE = r"(?:[ \t]|\r?\n[+\-]?){0,80}"
"""Between arguments or joined strings; on a line of its own, after the sign of a patch."""

_LITERAL = re.compile(
    r"(?:[rRbBuUfF]{0,2})(?:"
    r"(?P<thrice>\"\"\"|''')(?P<long>[\s\S]{0,4000}?)(?P=thrice)"
    r"|\\(?P<escaped>[\"'])(?P<inner>[^\"'\\\n]*)\\(?P=escaped)"  # in the JSON of a notebook
    r"|(?P<once>[\"'])(?P<short>(?:\\.|(?!(?P=once))[^\\\n])*)(?P=once)"
    r"|[\"'](?P<cut>[^\"'\n]+)(?=\n|\Z))"
)
_JOINED = re.compile(SPACE)


class Part(NamedTuple):
    """A part of a text that is masked."""

    start: int
    end: int


def literals(text: str, position: int) -> Iterator[Part]:
    """Yield the contents of the string literal at a place, and of those that are joined to it."""
    while (found := _LITERAL.match(text, position)) is not None:
        group = next(name for name in ("long", "inner", "short", "cut") if found[name] is not None)
        yield Part(*found.span(group))
        joined = _JOINED.match(text, found.end())
        position = joined.end() if joined is not None else found.end()
