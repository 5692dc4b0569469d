"""Masking of secrets in everything that samebits writes (docs/reference/privacy.md).

Three things give a secret away: the name that it is given under (`--token X`, `HF_TOKEN=X`),
its position (the password of a URL, an `Authorization` header), and its own shape (`hf_…`, `ghp_…`). A value
that was found by its name is masked wherever else it appears, in the text of an exception for example.

A masked value leaves nothing behind, not even a digest: a short password can be guessed from its digest.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from samebits._text.secret_patterns import (
    BLOCK,
    HEADER,
    SHAPES,
    URL_USER,
    is_flag,
    is_ordinary,
    is_plain,
    is_secret_name,
    is_strong_name,
    is_suspect,
    looks_random,
    name_parts,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

MASK = "***"
NOT_RECORDED = "(arguments not recorded)"
"""Stands for all arguments of a command that was run with `--no-arguments`."""

_SHORTEST = 4  # characters of a known value that is looked for in messages
_LONG = 8  # … and in all texts
_NAME = re.compile(r"[A-Za-z][\w.\-]{0,80}")
_BETWEEN = re.compile(r"[\"']?\s{0,3}[=:]\s{0,3}")
_VALUE = re.compile(r"\"[^\"\n]*\"|'[^'\n]*'|[^\s\"',;&)}\]]+")
_OPTION = re.compile(r"(?P<name>(?<!\S)--?[A-Za-z][\w.\-]{0,80})(?P<between>\s+)(?P<value>[^\s-]\S*)")
_LOGINS = ("user", "userpass", "login", "userpwd", "u")


class Masker:
    """Masks the secrets of one run.

    Args:
        command: the script or `-m module` and its arguments.
        variables: environment; the values of those that are named as secrets are masked in texts.
        no_arguments: mask all arguments.

    Attributes:
        command: the command, masked.
    """

    def __init__(
        self,
        command: Sequence[str] = (),
        variables: Mapping[str, str] | None = None,
        *,
        no_arguments: bool = False,
    ) -> None:
        known: set[str] = set()
        self.command = _masked_command(command, known)
        start = 2 if list(command[:1]) == ["-m"] else 1
        for name, value in (variables or {}).items():
            if _is_secret(name, value):
                known.add(value)
        self._everywhere = _any_of(value for value in known if len(value) >= _LONG)
        if no_arguments:
            known.update(command[start:])
            rest = (NOT_RECORDED,) if len(command) > start else ()
            self.command = (*self.command[:start], *rest)
        self._in_messages = _any_of(known)

    def text(self, text: str) -> str:
        """Mask the secrets in a name, a path or the like."""
        if self._everywhere is not None:
            text = self._everywhere.sub(MASK, text)
        return masked(text)

    def message(self, text: str) -> str:
        """Mask the secrets in an error or a note: short values of arguments too."""
        if self._in_messages is not None:
            text = self._in_messages.sub(MASK, text)
        return self.text(text)

    def value(self, value: Any) -> Any:
        """Mask the secrets in the texts of a JSON value, and what a mapping names as a secret."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {name: self._item(name, each) for name, each in value.items()}
        if isinstance(value, (list, tuple)):
            return type(value)([self.value(each) for each in value])
        return value

    def _item(self, name: Any, value: Any) -> Any:
        if isinstance(name, str) and isinstance(value, str) and _is_secret(name, value):
            return MASK
        return self.value(value)


def masked(text: str) -> str:
    """Mask what looks like a secret in a text."""
    if not is_suspect(text):
        return text
    text = BLOCK.sub(MASK, text)
    text = URL_USER.sub(_without_user, text)
    text = HEADER.sub(lambda match: f"{match['head']}{MASK}", text)
    text = _OPTION.sub(_without_value, _without_pairs(text))
    return SHAPES.sub(MASK, text)


def _masked_command(command: Sequence[str], known: set[str]) -> tuple[str, ...]:
    """Mask the secrets among the arguments of a command, and add them to `known`."""
    masked_arguments: list[str] = []
    option = ""  # the option whose value the next argument is
    for argument in command:
        name, equals, value = argument.partition("=")
        if option and not (argument.startswith("-") and len(argument) > 1) and _is_secret(option, argument):
            known.add(argument)
            masked_arguments.append(MASK)
        elif equals and _is_secret(name, value):
            known.add(value.strip("\"'"))
            masked_arguments.append(f"{name}={MASK}")
        elif (name_parts(option) or [""])[-1] in _LOGINS and ":" in argument and "://" not in argument:
            user, _, password = argument.partition(":")
            known.add(password)
            masked_arguments.append(f"{user}:{MASK}")
        else:
            masked_arguments.append(masked(argument))
        option = argument if argument.startswith("-") and not equals else ""
    return tuple(masked_arguments)


def _is_secret(name: str, value: str) -> bool:
    """Tell whether that value, given under that name, is a secret."""
    value = value.strip("\"'")
    if not value or value == MASK or is_plain(value):
        return False
    if is_secret_name(name):
        return not is_flag(name) and (is_strong_name(name) or not is_ordinary(value))
    parts = name_parts(name)
    return bool(parts) and parts[-1] in ("key", "token") and looks_random(value)


def _without_pairs(text: str) -> str:
    """Mask the values of `name=value` and `name: value` whose names are names of secrets."""
    parts: list[str] = []
    done = position = 0
    while (name := _NAME.search(text, position)) is not None:
        position = name.end()
        between = (
            _BETWEEN.match(text, position)
            if is_secret_name(name[0]) or name_parts(name[0])[-1:] == ["key"]
            else None
        )
        value = _VALUE.match(text, between.end()) if between is not None else None
        if value is not None and _is_secret(name[0], value[0]):
            quote = value[0][0] if value[0][0] in "\"'" else ""
            parts += [text[done : value.start()], quote, MASK, quote]
            done = position = value.end()
    return "".join([*parts, text[done:]])


def _without_value(match: re.Match[str]) -> str:
    value = match["value"]
    if not _is_secret(match["name"], value):
        return match[0]
    return f"{match['name']}{match['between']}{MASK}"


def _without_user(match: re.Match[str]) -> str:
    """Mask the password of a URL, and a user name that is a token (with http it always is)."""
    user, password = match["user"], match["password"]
    if password is not None:
        return f"{match['scheme']}{user}:{MASK}@"
    is_token = match["scheme"].lower().startswith("http") and user.lower() != "git"
    return f"{match['scheme']}{MASK if is_token else user}@"


def _any_of(values: Iterable[str]) -> re.Pattern[str] | None:
    """Return a pattern of these values, the longest first; short ones match as whole words only."""
    chosen = sorted({value for value in values if len(value) >= _SHORTEST}, key=len, reverse=True)
    patterns = [
        value if len(value) >= _LONG else rf"(?<!\w){value}(?!\w)" for value in map(re.escape, chosen)
    ]
    return re.compile("|".join(patterns)) if patterns else None
