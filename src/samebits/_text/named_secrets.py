"""Secrets that a name gives away, in prose and in source code.

In prose, what follows a name is its value: `token: abc`. In source code that is an expression, such as
`token = tokens.pop()`, and only a string literal can be a secret: `token = "abc"`. Line ends are never
masked, nor the sign before a line of a patch, so that a patch stays one.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from samebits._text.secret_names import (
    MASK,
    can_name_a_secret,
    is_secret,
    is_secret_literal,
    looks_random,
    name_parts,
)
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
_ALTERNATIVE = re.compile(r"[^\n]{0,200}?\b(?:or|else)\s+(?=[rbuf]?\\?[\"'])")
_DEFAULT = re.compile(r"\\?[\"'][^)]{0,300}?\bdefault\s*=\s*")
_COMMA = re.compile(rf"\\?[\"']\s*,{SPACE}(?:default\s*=\s*)?")
_CALLED = re.compile(rf"\w\({SPACE}\\?[\"']\Z")
_SHELL_LINE = re.compile(r"[+\- ]?\s*\"?\s*(?:[!%#$]|export\b|set\b|ENV\b)")
_SIGNED_START = re.compile(r"[+\- ]?[\t ]*(?:export\s+|- )?[\"']?")
_SIGNED_LINE = re.compile(r"(?m)(?P<sign>^[+\-]?)(?!\s*$)[^\r\n]+")
_LONGEST_LOOK = 300  # characters by which a value is judged; so the time is linear in the text
_PAIRED = ("auth", "basicauth", "credentials")


def without_named(text: str, *, is_code: bool) -> str:
    """Mask the values of names of secrets.

    Args:
        text: prose, settings or source.
        is_code: whether it is source code, maybe as a patch.
    """
    pieces: list[str] = []
    done = position = 0
    while (name := _NAME.search(text, position)) is not None:
        position = name.end()
        if not can_name_a_secret(name[0]):
            continue
        for part in _values(text, name, is_code=is_code):
            if part.start >= done:
                pieces += [text[done : part.start], masked_lines(text[part.start : part.end])]
                done = position = part.end
    return "".join([*pieces, text[done:]])


def masked_lines(text: str) -> str:
    """Mask a secret of maybe several lines: it stays as many, each with its sign in a patch."""
    first, *others = text.split("\n")
    return "\n".join(
        [MASK if first else "", *(_SIGNED_LINE.sub(rf"\g<sign>{MASK}", line) for line in others)]
    )


def _values(text: str, name: re.Match[str], *, is_code: bool) -> Iterator[Part]:
    between = _BETWEEN.match(text, name.end())
    if between is None:
        yield from _argument(text, name)
        return
    start = between.end()
    opening = _OPENING.match(text, start)
    found = list(literals(text, start)) or (list(literals(text, opening.end())) if opening else [])
    if len(found) == 1 and name_parts(name[0])[-1] in _PAIRED:
        found += _after_comma(text, found[0])
    if not found:
        alternative = _ALTERNATIVE.match(text, start)
        found = list(literals(text, alternative.end())) if alternative is not None else []
    if found:
        judge = is_secret_literal if is_code else is_secret
        yield from (part for part in found if judge(name[0], text[part.start : part.end]))
    elif (word := _unquoted(text, name, between, is_code=is_code)) is not None:
        yield word


def _after_comma(text: str, first: Part) -> Iterator[Part]:
    """Yield the second string of a pair of a user and a password."""
    comma = _COMMA.match(text, first.end)
    if comma is not None:
        yield from literals(text, comma.end())


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


def _unquoted(text: str, name: re.Match[str], between: re.Match[str], *, is_code: bool) -> Part | None:
    """Return a value without quotes; in code there is one in a line for the shell or inside a string only."""
    nearest = max(0, name.start() - _LONGEST_LOOK)
    line = text[max(nearest, text.rfind("\n", nearest, name.start()) + 1) : name.start()]
    word = _WORD.match(text, between.end(), between.end() + _LONGEST_LOOK)
    if word is None:
        return None
    if not is_code and _SIGNED_START.fullmatch(line) and between[0].strip() == "=":
        word = _REST.match(text, between.end(), between.end() + _LONGEST_LOOK) or word
    if not is_secret(name[0], word[0]):
        return None
    is_value = not is_code or _is_value_in_code(line, between[0], text[word.start() : word.end() + 1])
    whole = word.re.match(text, word.start())
    return Part(*whole.span()) if is_value and whole is not None else None


def _is_value_in_code(before: str, between: str, value: str) -> bool:
    """Tell whether a word after a name is a value itself, and no expression that gives one.

    Args:
        before: the line, as far as the name.
        between: what stands between the name and the word.
        value: the word, with the character behind it.
    """
    if between != "=" or value[0] in "{%":
        return looks_random(value[:-1]) and value[-1] not in "([."
    if _SHELL_LINE.match(before) is not None or before.endswith(("?", "&", ";")):
        return True
    return before.replace("\\", "").count('"') % 2 == 1 or before.count("'") % 2 == 1
