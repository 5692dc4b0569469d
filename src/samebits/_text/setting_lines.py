"""Values in files of settings: to the end of the line, and the lines below that are more indented."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from samebits._text.secret_names import (
    is_about,
    is_one_word,
    is_plain,
    is_secret,
    is_secret_literal,
    is_secret_name,
    is_weak_name,
)
from samebits._text.string_literals import Part

if TYPE_CHECKING:
    from collections.abc import Iterator

_LINE_START = re.compile(
    r"(?:@@ -[^@\n]*@@ |[+\- ])?[\t ]*(?:[#;][\t ]*)?(?:export\s+|set\s+|ENV\s+|(?:- )+)?[\"']?"
)
_BETWEEN = re.compile(
    r"(?P<quote>[\"']?)[ \t]*(?P<sign>:|=)(?![=>:])[ \t]*(?:[!&][^\s=\"']+(?:[ \t]+|$))*", re.MULTILINE
)
_BLOCK = re.compile(r"(?:[|>][+\-0-9]{0,2})?[ \t]*(?:#[^\n]*)?\r?")
_COMMENT = re.compile(r"\s[#;].*")
_FAR = 1 << 30  # columns
_REFERENCE = re.compile(r"[&*][\w.\-]+|\$\([^()]*\)")
_CLOSED = re.compile(r"[\"']{3}|\"(?:\\.|[^\"\\])*\"|'[^']*'")
_COMMAND = re.compile(
    r"\S+\s+(?:\\$|[&|;]|\w+=|(?:\S*/)?(?:python|torchrun|accelerate|bash|sh|srun|mpirun|deepspeed|psql|curl"
    r"|docker|make|uv|poetry|node|npm|env|nohup|exec|samebits)\b)"
)
_DATA = re.compile(r"(?:null|true|false|[-\d.e+]+)\s*[,}\]]?")
_CHILD = re.compile(
    r"(?:- )*[\"']?(?P<key>[\w.\-]+)[\"']?[ \t]*(?::(?=\s|\Z)|=)[ \t]*(?:[!&]\S+[ \t]+)*(?P<value>.*)"
)
_ITEM = re.compile(r"(?:[#]\s*)?(?:- +)*(?:[!&]\S+[ \t]+)*[\"']?(?P<value>.*?)[\"']?,?\Z")


@dataclass(frozen=True, slots=True)
class Setting:
    """A line that gives a name its value.

    Args:
        text: the whole text.
        name: its name.
        line: where the line starts.
        start: where the value starts, after tags and anchors of YAML.
        column: of the name, the sign of a patch left out.
        has_signs: whether its lines are those of a patch.
        is_shell: whether it may stand before a command.
        is_data: whether its name has quotes, as in JSON.
    """

    text: str
    name: str
    line: int
    start: int
    column: int
    has_signs: bool
    is_shell: bool
    is_data: bool

    def values(self) -> list[Part] | None:
        """Return the parts that are secrets; None where the value is one with quotes or brackets."""
        newline = self.text.find("\n", self.start)
        end = len(self.text) if newline < 0 else newline
        rest = self.text[self.start : end].rstrip()
        if _BLOCK.fullmatch(rest):
            return list(self._nested(end, is_block=rest[:1] in ("|", ">")))
        if not is_secret_name(self.name):
            return None
        return self._scalar(rest, end)

    def _scalar(self, rest: str, end: int) -> list[Part] | None:
        """Return a value that begins on the line of its name."""
        value = _COMMENT.sub("", rest)
        if is_plain(value):
            return [] if rest.startswith(("$", "{{")) else None
        is_open = rest[0] in "\"'" and not _CLOSED.match(rest)
        if not is_open and self._has_own_end(rest):
            return None
        if not is_open and not self._is_secret(value):
            return []
        return [
            Part(self.start, self.start + len(rest.rstrip(",") if self.is_data else rest)),
            *self._more(end),
        ]

    def _has_own_end(self, rest: str) -> bool:
        """Tell whether a value ends before its line does."""
        return (
            rest[0] in "\"'[{"
            or (self.is_data and _DATA.match(rest) is not None)
            or (self.is_shell and _COMMAND.match(rest) is not None)
        )

    def _is_secret(self, value: str) -> bool:
        first = value.split(maxsplit=1)[0].rstrip(",;")
        return is_secret(self.name, first if is_weak_name(self.name) else value)

    def _more(self, end: int) -> Iterator[Part]:
        """Yield the lines that a value goes on in."""
        if not is_weak_name(self.name):
            yield from (line for line in self._below(end) if not is_plain(self.text[line.start : line.end]))

    def _nested(self, end: int, *, is_block: bool) -> Iterator[Part]:
        """Yield the lines of a block, or the values of a list or a table."""
        skipped = _FAR  # an entry that has no secret starts at that column
        for line in self._below(end, with_items=not is_block):
            content = self.text[line.start : line.end]
            if is_block:
                if is_secret(self.name, content):
                    yield line
                continue
            column = line.start - self.text.rfind("\n", 0, line.start)
            if column > skipped:
                continue
            child = _CHILD.match(content)
            skipped = column if child is not None and is_about(child["key"]) else _FAR
            found = child or _ITEM.match(content)
            if found is not None and self._is_item(child["key"] if child else "", found["value"]):
                yield Part(line.start + found.start("value"), line.start + found.end("value"))

    def _is_item(self, key: str, value: str) -> bool:
        if is_about(key) or _BLOCK.fullmatch(value) or (key == "key" and is_one_word(value)):
            return False
        if value[0] in "[{" or _REFERENCE.fullmatch(value):
            return False
        judge = is_secret_literal if is_weak_name(self.name) else is_secret
        return judge(self.name, _COMMENT.sub("", value))

    def _below(self, end: int, *, with_items: bool = False) -> Iterator[Part]:
        """Yield the contents of the lines below that are more indented."""
        while 0 <= end < len(self.text):
            start = end + 1
            end = self.text.find("\n", start)
            line = self.text[start:] if end < 0 else self.text[start:end]
            if self.has_signs and line.startswith(("@@ ", "diff --git ")):
                return
            signed = int(self.has_signs and line[:1] in ("+", "-", " "))
            content = line[signed:].strip()
            if not content or (self.has_signs and line.startswith("\\")):
                continue
            column = len(line) - signed - len(line[signed:].lstrip())
            if column < self.column or (
                column == self.column and not (with_items and content.startswith("- "))
            ):
                return
            yield Part(start + signed + column, start + signed + column + len(content))


def setting(text: str, name: re.Match[str], *, is_patch: bool) -> Setting | None:
    """Return the setting whose name is at a place, if a line begins with it."""
    nearest = max(0, name.start() - 300)
    line = max(nearest, text.rfind("\n", nearest, name.start()) + 1)
    before = text[line : name.start()]
    between = _BETWEEN.match(text, name.end())
    if (
        between is None
        or (line == nearest and line > 0 and text[line - 1] != "\n")
        or not _LINE_START.fullmatch(before)
    ):
        return None
    has_signs = is_patch or before.startswith("+")
    is_header = before.startswith("@@")
    indent = len(before)
    column = 0 if is_header else indent - has_signs - before.endswith(("'", '"'))
    is_shell = between[0] == "=" and not between["quote"]
    return Setting(text, name[0], line, between.end(), column, has_signs, is_shell, bool(between["quote"]))
