"""Secrets that a name gives away, in prose and in source code.

In prose, what follows a name is its value: `token: abc`. In source code that is an expression, such as
`token = tokens.pop()`, and only a string literal can be a secret: `token = "abc"`. Line ends are never
masked, nor the sign before a line of a patch, so that a patch stays one.
"""

from __future__ import annotations

import heapq
import re
from typing import TYPE_CHECKING

from samebits._text.expressions import Expression
from samebits._text.paired_values import element, paired
from samebits._text.quotes import Quotes
from samebits._text.secret_names import (
    MASK,
    can_name_a_secret,
    is_secret,
    is_secret_literal,
    looks_random,
)
from samebits._text.setting_lines import setting
from samebits._text.string_literals import SPACE, Part, literals

if TYPE_CHECKING:
    from collections.abc import Iterator

_NAME = re.compile(r"[A-Za-z][\w.\-]{0,80}")
_GAP = r"\s{0,3}(?:\\\n[+\-]?\s{0,40})?"
_TYPE = (
    r"(?::\s{0,3}(?:\w{1,10}\.)?(?:Optional|Union|Annotated|Final|ClassVar|Any|Literal|str|bytes|SecretStr)\b"
    r"[\w.\[\], |]{0,80}?\s{0,3})?(?==)"
)
_BETWEEN = re.compile(rf"\\?[\"']?\]?{_GAP}(?:[=!]=|:=|=>|{_TYPE}=|:){_GAP}")
_OPENING = re.compile(rf"(?:[\w.]{{0,40}}(?:[Ff]ield|[Ss]tr|bytes)\(|\(){SPACE}(?:default\s*=\s*)?")
_WORD = re.compile(r"[^\s\"'`,;&)}\]]+")
_REST = re.compile(r"[^\s\"'#]+")  # of a line in a file of settings
_DEFAULT = re.compile(r"\\?[\"'][^)]{0,300}?\bdefault\s*=\s*")
_COMMA = re.compile(rf"\\?[\"']\s*,{SPACE}(?:default\s*=\s*)?")
_CALLED = re.compile(rf"\w\({SPACE}\\?[\"']\Z")
_SHELL_LINE = re.compile(r"[+\- ]?\s*\"?\s*(?:[!%#$]|export\b|set\b|ENV\b)")
_SIGNED_START = re.compile(r"[+\- ]?[\t ]*(?:export\s+|- )?[\"']?")
_SIGNED_LINE = re.compile(r"(?m)(?P<sign>^[+\-]?)(?!\s*$)[^\r\n]+")
_HUNK = re.compile(r"(?m)^@@ -\d")
_COMPARED = re.compile(r"[=!]=")
_JSON_LINE = re.compile(r"[+\- ]?\s*\"")
_ESCAPED_END = re.compile(r"(?:\\n)?\"\s*,?\s*(?:\n|\Z)")
_STATEMENT_START = re.compile(r"[+\- ]?[\t ]*(?:[\w.]+\.)?[\"']?")
_CALL = re.compile(r"[\w.]*[(\[](?:.{0,80}=)?\\?\W?\Z")
_LONGEST_LOOK = 300  # characters by which a value is judged; so the time is linear in the text


def without_named(text: str, *, is_code: bool) -> str:
    """Mask the values of names of secrets.

    Args:
        text: prose, settings or source.
        is_code: whether it is source code, maybe as a patch.
    """
    pieces: list[str] = []
    done = 0
    for part in sorted(_Search(text, is_code=is_code).parts()):
        if part.start >= done:
            pieces += [text[done : part.start], masked_lines(text[part.start : part.end])]
        done = max(done, part.end)
    return "".join([*pieces, text[done:]])


def masked_lines(text: str) -> str:
    """Mask a secret of maybe several lines: it stays as many, each with its sign in a patch."""
    first, *others = text.split("\n")
    return "\n".join(
        [MASK if first else "", *(_SIGNED_LINE.sub(rf"\g<sign>{MASK}", line) for line in others)]
    )


class _Search:
    """Looks for the values of all names of secrets in a text.

    Args:
        text: any.
        is_code: whether it is source code.
    """

    def __init__(self, text: str, *, is_code: bool) -> None:
        self._text = text
        self._is_code = is_code
        self._is_patch = text.startswith("diff --git ") or _HUNK.search(text) is not None
        self._quotes = Quotes(text)
        self._parsed = 0  # the expressions up to there were read
        self._ahead: list[Part] = []  # a heap of parts that are masked and not yet passed

    def parts(self) -> Iterator[Part]:
        """Yield what is masked; parts may overlap."""
        position = 0
        while (name := _NAME.search(self._text, position)) is not None:
            position = name.end()
            if not can_name_a_secret(name[0]):
                continue
            while self._ahead and self._ahead[0].end <= name.start():
                heapq.heappop(self._ahead)
            if self._ahead and self._ahead[0].start <= name.start():
                position = self._ahead[0].end
                continue
            for part in self._values(name):
                heapq.heappush(self._ahead, part)
                yield part

    def _values(self, name: re.Match[str]) -> Iterator[Part]:
        yield from paired(self._text, name, is_code=self._is_code, is_patch=self._is_patch)
        yield from element(self._text, name, is_patch=self._is_patch)
        between = _BETWEEN.match(self._text, name.end())
        found = None
        if not self._is_code and (given := setting(self._text, name, is_patch=self._is_patch)) is not None:
            found = given.values()
        if found is not None:
            yield from found
        elif between is None:
            yield from _argument(self._text, name)
        else:
            yield from self._given(name, between)

    def _given(self, name: re.Match[str], between: re.Match[str]) -> Iterator[Part]:
        """Yield the strings of an expression, or a word."""
        text, start = self._text, between.end()
        judge = is_secret_literal if self._is_code else is_secret
        direct = list(literals(text, start)) or self._opened(start)
        yield from (part for part in direct if judge(name[0], text[part.start : part.end]))
        around = self._quotes.around(name.start())
        if around is not None and around.end <= name.end() + 1:
            around = None
        others: list[Part] = []
        if not _COMPARED.search(between[0]):
            others = self._expression(name, start, around)
            yield from others
        if not direct and not others and (word := self._word(name, between, around)) is not None:
            yield word

    def _opened(self, start: int) -> list[Part]:
        opening = _OPENING.match(self._text, start)
        return list(literals(self._text, opening.end())) if opening is not None else []

    def _expression(self, name: re.Match[str], start: int, around: Part | None) -> list[Part]:
        """Read the expression that a name is given, unless it was read as a part of another."""
        if start < self._parsed:
            return []
        text = self._text
        nearest = max(0, name.start() - _LONGEST_LOOK)
        line = max(nearest, text.rfind("\n", nearest, name.start()) + 1)
        before = text[line : name.start()]
        is_in_notebook = (
            _JSON_LINE.match(before) is not None
            and _ESCAPED_END.search(text, start, start + 2000) is not None
        )
        limited = self._is_code and around is not None and not is_in_notebook
        stop = around.end - 1 if limited and around is not None else len(text)
        has_signs = self._is_patch or before[:1] == "+"
        column = len(before) - len(before[has_signs:].lstrip()) - has_signs
        is_statement = _STATEMENT_START.fullmatch(before) is not None and not before.endswith(("'", '"'))
        found = Expression(
            text, name[0], start, stop, self._is_code, has_signs, is_in_notebook,
            is_statement and text[name.end() : start].strip() == "=", column,
        )  # fmt: skip
        parts, self._parsed = found.values()
        return parts

    def _word(self, name: re.Match[str], between: re.Match[str], around: Part | None) -> Part | None:
        """Return a value without quotes; in code only for a shell or inside a string."""
        text = self._text
        nearest = max(0, name.start() - _LONGEST_LOOK)
        line = text[max(nearest, text.rfind("\n", nearest, name.start()) + 1) : name.start()]
        pattern = _WORD
        if not self._is_code and _SIGNED_START.fullmatch(line) and between[0].strip() == "=":
            pattern = _REST
        word = pattern.match(text, between.end(), between.end() + _LONGEST_LOOK)
        if word is None or not is_secret(name[0], word[0]):
            return None
        shown = text[word.start() : word.end() + 1]
        if self._is_code and not _is_value_in_code(line, between[0], shown, is_in_string=around is not None):
            return None
        whole = pattern.match(text, word.start())
        return Part(*whole.span()) if whole is not None else None


def _argument(text: str, name: re.Match[str]) -> Iterator[Part]:
    """Yield the value in `setdefault("NAME", "value")` or `("--name", default="value")`."""
    before = text[max(0, name.start() - 100) : name.start()]
    is_option = before.endswith("-")
    comma = _COMMA.match(text, name.end())
    found = list(literals(text, comma.end()))[:1] if comma is not None else []
    if is_option and not found and (default := _DEFAULT.match(text, name.end())) is not None:
        found = list(literals(text, default.end()))
    is_named = is_option or _CALLED.search(before) is not None
    for part in found:
        value = text[part.start : part.end]
        if is_secret_literal(name[0], value) and (is_named or looks_random(value)):
            yield part


def _is_value_in_code(before: str, between: str, value: str, *, is_in_string: bool) -> bool:
    """Tell whether a word after a name is a value itself, and no expression that gives one.

    Args:
        before: the line, as far as the name.
        between: what stands between the name and the word.
        value: the word, with the character behind it.
        is_in_string: whether the name stands in the middle of a string.
    """
    if _CALL.match(value):
        return False
    if between != "=" or value[0] in "{%":
        return looks_random(value[:-1]) and value[-1] not in "([."
    return _SHELL_LINE.match(before) is not None or before.endswith(("?", "&", ";")) or is_in_string
