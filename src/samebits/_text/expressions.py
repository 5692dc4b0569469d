"""The strings of an expression that are its value: items, alternatives and arguments, over several lines."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum, auto
from typing import NamedTuple

from samebits._text.secret_names import (
    is_about,
    is_secret,
    is_secret_literal,
    is_secret_name,
    is_weak_name,
    looks_like_password,
    words,
)
from samebits._text.string_literals import Part, literals

_LONGEST = 100_000  # characters of one expression
_TOKEN = re.compile(
    r"(?P<open>[(\[{])|(?P<close>[)\]}])|(?P<comma>,)|(?P<end>;)|(?P<comment>(?<!\S)(?:#|//)[^\n]*)"
    r"|(?P<joined>\\\r?\n)|(?P<line>\n)|(?P<quote>[rRbBuUfF]{0,2}\\?[\"'])"
    r"|(?P<key>(?<![\w\"'.])[A-Za-z_][\w.\-]{0,80}[ \t]{0,3}(?:=(?![=>])|:(?=\s)))"
)
_TOKEN_OF_NOTEBOOK = re.compile(_TOKEN.pattern.replace(r"\\?[\"']", r"(?:\\\"|')"))
_CALLEE = re.compile(r"(?:\b([A-Za-z_]\w{0,60})|([\])]))\Z")
_WORD_BEFORE = re.compile(r"(?<![\w])(?!(?:or|else|and|if|in|return|await|not)\b)\w+[ \t]+\Z")
_COMPARED_BEFORE = re.compile(r"(?:[=!]=|[<>]|\bin|\bis|\bnot|\bcase)\s*\(?\Z")
_COMPARED_AFTER = re.compile(r"\\?[\"']\s*(?:[=!]=|in\b|not in\b)")
_KEY_AFTER = re.compile(r"\\?[\"']\s*(?::(?!=)|=>)")
_OPERAND = re.compile(r"(?:\b(?:or|else|and|return|await)|[-+|?:(\[{=%,&])\s*\\?\s*\Z")
_EDGES = re.compile(r"\s*"), re.compile(r"\s+\Z")
_SIGNED_EDGES = re.compile(r"(?:\n[+\- ]?|\s)*"), re.compile(r"(?:\r?\n[+\- ]?[ \t]*|[ \t])+\Z")
_CLOSING = re.compile(r"\\?(?:\"\"\"|'''|[\"'])")
_LITERAL_NEXT = re.compile(r"\s{0,3}[rRbBuUfF]{0,2}\\?[\"']")
_NEW_HUNK = re.compile(r"@@ -|diff --git ")
_STATEMENT = re.compile(r"[A-Za-z_@]|\"[^\"\n]{0,80}\"\s*:")
_WHOLE_VALUES = words("dict str bytes list tuple set frozenset field join b64decode fromhex ordereddict")
_OF_DEFAULTS = words("getenv get pop setdefault getattr")


class _Kind(Enum):
    """What stands between two brackets."""

    VALUES = auto()
    TABLE = auto()
    DEFAULT = auto()  # the first argument is a name, the next a value
    OTHER = auto()  # arguments of any call
    INDEX = auto()


class _Frame(NamedTuple):
    """What is open.

    Args:
        kind: how strings in it are judged.
        item: where its present item starts.
        key: the name of that item, if it has one.
        number: of that item.
        is_flow: whether words without quotes are values, as in YAML.
    """

    kind: _Kind
    item: int
    key: str = ""
    number: int = 0
    is_flow: bool = False


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression that the name of a secret is given.

    Args:
        text: the whole text.
        name: of the secret.
        start: where the expression starts.
        stop: where it ends at the latest.
        is_code: whether the text is source code.
        has_signs: whether its lines are those of a patch.
        is_in_notebook: whether it stands in the JSON of a notebook, whose strings have escaped quotes.
        is_statement: whether a tuple needs no brackets there.
        column: of the name.
    """

    text: str
    name: str
    start: int
    stop: int
    is_code: bool
    has_signs: bool
    is_in_notebook: bool
    is_statement: bool
    column: int

    def values(self) -> tuple[list[Part], int]:
        """Return the strings that are secrets, and where the expression ends."""
        parts: list[Part] = []
        stack = [_Frame(_Kind.VALUES, self.start)]
        token = _TOKEN_OF_NOTEBOOK if self.is_in_notebook else _TOKEN
        position, stop = self.start, min(self.stop, self.start + _LONGEST)
        while (found := token.search(self.text, position, stop)) is not None:
            position = found.end()
            kind = found.lastgroup
            if kind == "quote":
                position = self._quoted(stack, found.start(), parts)
            elif self._is_end(kind, len(stack), position):
                return parts, found.start()
            elif kind is not None:
                self._step(stack, found, parts)
        return parts, stop

    def _is_end(self, kind: str | None, depth: int, position: int) -> bool:
        if depth > 1:
            return kind == "line" and self._ends_before(position)
        is_tuple = self.is_statement and _LITERAL_NEXT.match(self.text, position) is not None
        return kind in ("close", "end", "line", "comment") or (kind == "comma" and not is_tuple)

    def _ends_before(self, line: int) -> bool:
        """Tell whether a line inside of brackets cannot belong to the expression."""
        if _NEW_HUNK.match(self.text, line):
            return True
        start = line + (self.has_signs and self.text[line : line + 1] in ("+", "-", " "))
        content = start
        while self.text[content : content + 1] in (" ", "\t"):
            content += 1
        return content - start <= self.column and _STATEMENT.match(self.text, content) is not None

    def _step(self, stack: list[_Frame], found: re.Match[str], parts: list[Part]) -> None:
        top = stack[-1]
        kind = found.lastgroup
        if kind == "open":
            stack.append(self._opened(top, found))
        elif kind == "close":
            self._bare(stack, found.start(), parts)
            stack.pop()
            stack[-1] = stack[-1]._replace(item=-1)
        elif kind == "comma":
            self._bare(stack, found.start(), parts)
            stack[-1] = top._replace(item=found.end(), key="", number=top.number + 1)
        elif kind == "key" and len(stack) > 1:
            key = found[0].rstrip(" \t=:")
            stack[-1] = top._replace(item=found.end(), key=key)
        elif kind == "end" and top.kind is _Kind.TABLE:  # a block of statements
            stack[-1] = top._replace(kind=_Kind.INDEX)

    def _opened(self, top: _Frame, found: re.Match[str]) -> _Frame:
        bracket, start = found[0], found.start()
        before = self.text[max(self.start, start - 60) : start]
        callee = _CALLEE.search(before)
        kind = top.kind
        if callee is not None and bracket == "[" and callee[1] not in ("in", "return", "else", "or"):
            kind = _Kind.INDEX
        elif callee is not None and bracket == "(":
            kind = _kind_of_call(callee[1] or "", kind)
        elif (
            (bracket == "(" and _WORD_BEFORE.search(before))
            or before.rstrip().endswith(("=>", ")"))
            or (top.kind is _Kind.DEFAULT and top.number == 0)
        ):
            kind = _Kind.OTHER
        elif bracket == "{" and kind in (_Kind.VALUES, _Kind.DEFAULT):
            kind = _Kind.TABLE
        elif kind in (_Kind.TABLE, _Kind.DEFAULT):
            kind = _Kind.VALUES
        is_flow = not self.is_code and bracket in "[{" and (top.is_flow or start == self.start)
        return _Frame(kind, found.end(), top.key, is_flow=is_flow)

    def _quoted(self, stack: list[_Frame], start: int, parts: list[Part]) -> int:
        """Judge a string, and those joined to it; return where they end."""
        top, end = stack[-1], start + 1
        for part in literals(self.text, start):
            end = part.end
            if top.kind in (_Kind.TABLE, _Kind.OTHER) and _KEY_AFTER.match(self.text, part.end):
                stack[-1] = top = top._replace(key=self.text[part.start : part.end], item=-1)
            elif self._is_value(top, len(stack), start, part):
                parts.append(part)
        stack[-1] = stack[-1]._replace(item=-1)
        closing = _CLOSING.match(self.text, end)
        return closing.end() if closing is not None else max(end, start + 1)

    def _is_value(self, frame: _Frame, depth: int, start: int, part: Part) -> bool:
        before = self.text[max(self.start, start - 20) : start]
        if _COMPARED_BEFORE.search(before) or _COMPARED_AFTER.match(self.text, part.end):
            return False
        if depth == 1 and start > self.start and before.strip() and not _OPERAND.search(before):
            return False
        return self._is_secret(frame, depth, self.text[part.start : part.end])

    def _is_secret(self, frame: _Frame, depth: int, value: str) -> bool:
        key = frame.key
        if key and is_secret_name(key):
            return is_secret_literal(key, value)
        if frame.kind is _Kind.INDEX or (frame.kind is _Kind.DEFAULT and frame.number == 0 and not key):
            return False
        if (key and is_about(key)) or (frame.kind is _Kind.OTHER and not looks_like_password(value)):
            return False
        is_strict = self.is_code or (depth > 1 and is_weak_name(self.name))
        return (is_secret_literal if is_strict else is_secret)(self.name, value)

    def _bare(self, stack: list[_Frame], end: int, parts: list[Part]) -> None:
        """Judge an item without quotes."""
        frame = stack[-1]
        if not frame.is_flow or frame.item < 0:
            return
        first, last = _EDGES if not self.has_signs else _SIGNED_EDGES
        opening = first.match(self.text, frame.item, end)
        start = opening.end() if opening is not None else frame.item
        value = last.sub("", self.text[start:end])
        if value and self._is_secret(frame, len(stack), value):
            parts.append(Part(start, start + len(value)))


def _kind_of_call(callee: str, around: _Kind) -> _Kind:
    if around in (_Kind.OTHER, _Kind.INDEX):
        return around
    if callee in _OF_DEFAULTS:
        return _Kind.DEFAULT
    if callee.lower() in _WHOLE_VALUES or (callee[:1].isupper() and "secret" in callee.lower()):
        return _Kind.VALUES
    return _Kind.VALUES if callee[:1].isupper() and is_secret_name(callee) else _Kind.OTHER
