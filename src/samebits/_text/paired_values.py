"""Values whose name stands beside them: `name: DB_PASSWORD`, `value: X`, and elements of XML."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from samebits._text.secret_names import is_secret, is_secret_literal, is_secret_name, is_weak_name
from samebits._text.string_literals import Part, literals

if TYPE_CHECKING:
    from collections.abc import Iterator

_IS_NAMED = re.compile(
    r"(?:\b|[a-z])(?:[Nn]ame|[Kk]ey|[Ii]d|[Vv]ariable|[Vv]ar|NAME|KEY)(?:[\"']?\s{0,3}[:=]\s{0,3}[\"']?|>)\Z"
)
_VALUE = r"(?:\b|[a-z])(?:[Vv]alue|val|VALUE|[Dd]efault)(?:[\"']?\s{0,3}[:=](?![=>])[ \t]*|>)"


def _around(item: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return patterns of a value after and before a name, in one record.

    Args:
        item: what begins the next item of a list.
    """
    record = rf"(?:(?!{item})[^{{}}()\[\]])"
    after = rf"[\"']?(?=[\s,;<]){record}{{0,200}}?{_VALUE}"
    before = rf"{_VALUE}(?!{record}{{0,200}}{_VALUE})(?={record}{{0,200}}\Z)"
    return re.compile(after), re.compile(before)


_IN_FILE = _around(r"\n[ \t]*- ")
_IN_PATCH = _around(r"\n[+\- ][ \t]*- ")
_AGAIN = re.compile(rf"[^\n]*\n[+\- ][ \t]*[\"']?{_VALUE}")
_WORDS = re.compile(r"[^\n\"',}\])<][^\n,}\])<]*")
_LINE = re.compile(r"[^\n\"'][^\n]*")
_ELEMENT = re.compile(r"(?:\s[^<>\n]{0,200})?(?<!/)>")
_TEXT_NODE = re.compile(r"(?:>|<!\[CDATA\[)(?P<text>[^<>\]]+)")
_LINES = re.compile(r"(?P<text>\S(?:[^\n]*\S)?)")
_SIGNED_LINES = re.compile(r"(?:(?<=\n)[+\- ])?[ \t]*(?P<text>\S(?:[^\n]*\S)?)")
_LONGEST = 4000  # characters of an element


def paired(text: str, name: re.Match[str], *, is_code: bool, is_patch: bool) -> Iterator[Part]:
    """Yield the value that stands beside a name in the same record."""
    before = text[max(0, name.start() - 300) : name.start()]
    if not is_secret_name(name[0]) or _IS_NAMED.search(before[-40:]) is None:
        return
    look_after, look_before = _IN_PATCH if is_patch else _IN_FILE
    after = look_after.match(text, name.end())
    place = after.end() if after is not None else -1
    if after is None and (earlier := look_before.search(before)) is not None:
        place = name.start() - len(before) + earlier.end()
    if place < 0:
        return
    between = after[0] if after is not None else before[place - name.start() :]
    yield from _values(text, name[0], place, is_line="\n" in between, is_code=is_code)
    if is_patch and (again := _AGAIN.match(text, place)) is not None:  # the line before and after a change
        yield from _values(text, name[0], again.end(), is_line=True, is_code=is_code)


def element(text: str, name: re.Match[str], *, is_patch: bool) -> Iterator[Part]:
    """Yield the texts in an element of XML that the name of a secret is the tag of."""
    if text[max(0, name.start() - 1) : name.start()] != "<":
        return
    opening = _ELEMENT.match(text, name.end())
    if opening is None:
        return
    start = opening.end()
    end = text.find(f"</{name[0]}", start, start + _LONGEST)
    if end < 0 and "\n" in text[start : start + 2]:  # cut by the end of a hunk
        end = text.find("\n", start + 2, start + _LONGEST)
    judge = is_secret_literal if is_weak_name(name[0]) else is_secret
    for found in _TEXT_NODE.finditer(text, start - 1, max(start, end)):
        for line in (_SIGNED_LINES if is_patch else _LINES).finditer(text, *found.span("text")):
            if judge(name[0], line["text"]):
                yield Part(*line.span("text"))


def _values(text: str, name: str, place: int, *, is_line: bool, is_code: bool) -> Iterator[Part]:
    judge = is_secret_literal if is_code or is_weak_name(name) else is_secret
    found = list(literals(text, place))
    if not found and not is_code and (word := (_LINE if is_line else _WORDS).match(text, place)):
        found = [Part(word.start(), word.start() + len(word[0].rstrip()))]
    yield from (part for part in found if judge(name, text[part.start : part.end]))
