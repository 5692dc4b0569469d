"""Makes a page fit to be given away: paths without the user's folders, secrets masked."""

from __future__ import annotations

import os
import re
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any, Protocol, TypeVar

from samebits._text.masking import masked
from samebits.report.html.document import Code, CodeLine, Figure

_P = TypeVar("_P")
_NAMES = ("kind", "ident", "tone", "change")  # words of our own


def shareable(page: _P, folder: str) -> _P:
    """Return a page whose texts hold no secret that samebits recognises, and no more of paths than is needed.

    A path inside the working folder is relative to it, one inside the home folder begins with `~`.

    Args:
        page: of any texts.
        folder: the working folder.
    """
    home = str(Path.home())

    def shared(text: str, *, is_code: bool = False) -> str:
        return masked(_without(_without(text, folder, ""), home, f"~{os.sep}"), is_code=is_code)

    return _mapped(page, shared)


def _without(text: str, folder: str, instead: str) -> str:
    """Return a text with another beginning of the paths inside a folder."""
    if folder == os.sep:
        return text
    return re.sub(rf"(?<![\w.~/\\-]){re.escape(folder + os.sep)}", lambda _: instead, text)


class _Change(Protocol):
    def __call__(self, text: str, *, is_code: bool = False) -> str: ...


def _mapped(value: _P, function: _Change) -> _P:
    """Apply a function to every text of frozen values, but not to drawings and words of our own."""
    changed: Any = value
    if isinstance(value, str):
        changed = function(value)
    elif isinstance(value, tuple):
        changed = tuple(_mapped(each, function) for each in value)
    elif isinstance(value, Figure):
        changed = replace(value, alt=function(value.alt), caption=function(value.caption))
    elif isinstance(value, Code):
        changed = replace(value, title=function(value.title), lines=_shared_lines(value.lines, function))
    elif is_dataclass(value) and not isinstance(value, type):
        named = {each.name: getattr(value, each.name) for each in fields(value) if each.name not in _NAMES}
        changed = replace(value, **{name: _mapped(each, function) for name, each in named.items()})
    result: _P = changed
    return result


def _shared_lines(lines: tuple[CodeLine, ...], function: _Change) -> tuple[CodeLine, ...]:
    """Change all lines at once: a secret can have several, and they stay as many."""
    texts = function("\n".join(line.text for line in lines), is_code=True).split("\n")
    if len(texts) != len(lines):  # a line holds a line end, as none of a source does
        texts = [function(line.text, is_code=True) for line in lines]
    return tuple(replace(line, text=text) for line, text in zip(lines, texts, strict=True))
