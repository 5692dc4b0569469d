"""Masking of secrets in everything that samebits writes (docs/reference/privacy.md).

Three things give a secret away: the name that it is given under (`--token X`, `HF_TOKEN=X`),
its position (the password of a URL, a header, a login call), and its own shape (`hf_…`, `ghp_…`). A value
that was found by its name is masked wherever else it appears, in the text of an exception for example.

A masked value leaves nothing behind, not even a digest: a short password can be guessed from its digest.
"""

from __future__ import annotations

import re
from itertools import chain, count
from typing import TYPE_CHECKING, Any

from samebits._text.call_secrets import without_call_arguments
from samebits._text.named_secrets import masked_lines, without_named
from samebits._text.secret_names import MASK, is_one_word, is_plain, is_secret, name_parts
from samebits._text.secret_shapes import SHAPES, without_keys

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

NOT_RECORDED = "(arguments not recorded)"
"""Stands for all arguments of a command that was run with `--no-arguments`."""

_SHORTEST = 4  # characters of a known value that is looked for in messages
_LONG = 8  # … and in all texts
_OPTION = re.compile(
    r"(?P<name>(?<!\S)--?[A-Za-z][\w.\-]{0,80})(?P<between>\s+)(?P<value>\"[^\"\n]*\"|'[^'\n]*'|[^\s-]\S*)"
)
_LOGINS = ("user", "userpass", "login", "userpwd", "u")
_CODE = (
    ".py", ".pyi", ".pyx", ".ipynb", ".c", ".cc", ".cpp", ".cu", ".cuh", ".h", ".hpp", ".rs", ".go", ".jl",
    ".java", ".js", ".ts", ".lua", ".scala", ".swift",
)  # fmt: skip
_FILE_OF_A_PATCH = re.compile(r"(?m)^(?=diff --git )")


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
            if is_secret(name, value):
                known.add(value)
        self._everywhere = _any_of(value for value in known if len(value) >= _LONG)
        if no_arguments:
            known.update(command[start:])
            rest = (NOT_RECORDED,) if len(command) > start else ()
            self.command = (*self.command[:start], *rest)
        self._in_messages = _any_of(known)

    def text(self, text: str) -> str:
        """Mask the secrets in a name, a path or the like."""
        return masked(self._without_known(text))

    def code(self, text: str) -> str:
        """Mask the secrets in source code."""
        return masked(self._without_known(text), is_code=True)

    def file(self, name: str, text: str) -> str:
        """Mask the secrets in text of a file, by its name: source code or other text."""
        return self.code(text) if is_source_file(name) else self.text(text)

    def patch(self, diff: str) -> str:
        """Mask the secrets in what `git diff` gave: each file by its name; the lines stay as many."""
        return masked_patch(self._without_known(diff))

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
            return self._table(value)
        if isinstance(value, (list, tuple)):
            return type(value)([self.value(each) for each in value])
        return value

    def _without_known(self, text: str) -> str:
        return text if self._everywhere is None else self._everywhere.sub(MASK, text)

    def _table(self, table: dict[Any, Any]) -> dict[Any, Any]:
        """Mask names and values; names that are the same once they are masked get numbers."""
        shown: dict[Any, Any] = {}
        for name, value in table.items():
            masked_name = self.value(name)
            numbered = (f"{masked_name} ({number})" for number in count(2))
            free = next(each for each in chain((masked_name,), numbered) if each not in shown)
            shown[free] = self._item(name, value)
        return shown

    def _item(self, name: Any, value: Any) -> Any:
        if isinstance(name, str) and isinstance(value, str) and is_secret(name, value):
            return MASK
        if isinstance(name, str) and isinstance(value, (list, tuple)):
            return type(value)([self._item(name, each) for each in value])
        return self.value(value)


def masked(text: str, *, is_code: bool = False) -> str:
    """Mask what looks like a secret in a text.

    Args:
        text: any.
        is_code: whether it is source code, in which a secret is a string: `token = next_token()` is none.
    """
    if _NUMBERS.fullmatch(text) or not _is_suspect(text):
        return text
    text = _BLOCK.sub(_without_block, text)
    text = _URL_USER.sub(_without_user, text)
    text = _HEADER.sub(_without_header, text)
    text = _NETRC.sub(lambda match: f"{match['head']}{MASK}", text)
    text = without_named(text, is_code=is_code)
    text = _OPTION.sub(_without_value_in_code if is_code else _without_value, text)
    text = without_call_arguments(text)
    return without_keys(text, MASK)


def masked_code(text: str) -> str:
    """Mask what looks like a secret in lines of source code; they stay as many."""
    return masked(text, is_code=True)


def masked_patch(diff: str) -> str:
    """Mask what looks like a secret in what `git diff` gave: in each file by the file's name."""
    files = _FILE_OF_A_PATCH.split(diff)
    return "".join(masked(each, is_code=is_source_file(each.partition("\n")[0].rstrip())) for each in files)


def is_source_file(name: str) -> bool:
    """Tell by its name whether a file is source code."""
    return name.rstrip('"').endswith(_CODE)


def _masked_command(command: Sequence[str], known: set[str]) -> tuple[str, ...]:
    """Mask the secrets among the arguments of a command, and add them to `known`."""
    masked_arguments: list[str] = []
    option = ""  # the option whose value the next argument is
    for argument in command:
        name, equals, value = argument.partition("=")
        if option and not (argument.startswith("-") and len(argument) > 1) and is_secret(option, argument):
            known.add(argument)
            masked_arguments.append(MASK)
        elif equals and is_secret(name, value):
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


def _without_value(match: re.Match[str]) -> str:
    name, value = match["name"], match["value"]
    user, colon, password = value.strip("\"'").partition(":")
    if colon and password and "//" not in value and name_parts(name)[-1] in _LOGINS:
        return f"{name}{match['between']}{user}:{MASK}"
    return f"{name}{match['between']}{MASK}" if is_secret(name, value) else match[0]


def _without_value_in_code(match: re.Match[str]) -> str:
    """Mask the value of an option in a command that a string or a comment of code shows."""
    return match[0] if is_one_word(match["value"]) else _without_value(match)


def _without_block(match: re.Match[str]) -> str:
    return masked_lines(match[0]) if _ENCODED.search(match["body"]) else match[0]


def _without_header(match: re.Match[str]) -> str:
    value = match["value"].rstrip(".")
    is_word = match["head"].lower().startswith("bearer") and value.isalpha() and value.islower()
    return match[0] if is_word or is_plain(value) or value.startswith("{") else f"{match['head']}{MASK}"


def _without_user(match: re.Match[str]) -> str:
    """Mask the password of a URL, and a user name that is a token (with http it always is)."""
    user, password = match["user"], match["password"]
    if password is not None and _TEMPLATE.fullmatch(password):
        return match[0]
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


_BLOCK = re.compile(
    r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY[A-Z ]*-----(?P<body>[\s\S]*?)(?:-----END [A-Z0-9 ]*-----|\Z)"
)
_ENCODED = re.compile(r"[A-Za-z0-9+/=\-]{8}")
_TEMPLATE = re.compile(r"\{[^{}]*\}|<[^<>]*>|\$\{?\w+\}?|%s")
_HEADER = re.compile(
    r"(?P<head>\bauthorization[\"']?\]?\s{0,3}[:=]\s{0,3}[\"']?(?:[A-Za-z]{2,20}[ \t]+)|\bbearer[ \t]+)"
    r"(?P<value>[^\s\"',;)]+)",
    re.IGNORECASE,
)
_NETRC = re.compile(r"(?P<head>\blogin\s+\S{1,100}\s+password\s+)\S+")
_URL_USER = re.compile(
    r"(?P<scheme>\b[A-Za-z][A-Za-z0-9+.\-]{0,30}://)(?P<user>[^\s/:@\"'?#]{0,300})(?::(?P<password>[^\s/\"'?#]{0,300}))?@"
)

# Every rule needs a word or a key. The results of ops that a script reads are of this kind, each another.
_NUMBERS = re.compile(r"[\d\s.,()\[\]'>e+\-]*", re.ASCII)

# Of what has no known beginning: names, positions, calls.
_MARKS = (
    "pass", "pwd", "secret", "token", "key", "auth", "bearer", "cred", "cookie", "jwt", "otp", "dsn", "sas",
    "sig", "pw", "connection", "login", "user", "-u", "://", "-----begin", "(",
    *chain(*(each.beginnings for each in SHAPES)),
)  # fmt: skip


def _is_suspect(text: str) -> bool:
    """Tell quickly whether any rule can apply to a text: most texts hold nothing of the kind."""
    lowered = text.lower()
    return any(word in lowered for word in _MARKS)
