"""What is filled in on the command line of a run: its folder, the newest checkpoint."""

from __future__ import annotations

import glob
import os
import re
import shlex
from typing import TYPE_CHECKING

from samebits.errors import SamebitsError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_PLACEHOLDER = re.compile(r"\{(run|step|newest:([^{}]*))\}")
_NUMBERS = re.compile(r"(\d+)")


class NothingFoundError(Exception):
    """No file matches a pattern; the argument is the pattern."""


def split_words(text: str) -> tuple[str, ...]:
    """The words of `--resume-args`, as a shell would split them.

    Raises:
        SamebitsError: a quote is not closed; `usage`.
    """
    try:
        return tuple(shlex.split(text))
    except ValueError as error:
        message = f"--resume-args {text!r}: {error}; expected words as in a shell"
        raise SamebitsError(message, slug="usage") from None


def fill_in(words: Iterable[str], folder: Path, step: int | None = None) -> tuple[str, ...]:
    """Words with their placeholders filled in; other braces are left alone.

    `{run}` is the folder of the run, `{step}` the number of steps before the kill, and `{newest:PATTERN}` the
    file or folder that matches and was changed last, relative to the folder as the pattern is. Of those that
    were changed at the same moment it is the one whose name comes last, numbers by their value.
    A link that leads nowhere (its checkpoint was deleted) does not match.

    Args:
        words: the words.
        folder: of the run.
        step: number of steps.

    Raises:
        NothingFoundError: nothing matches a pattern.
    """

    def filled(match: re.Match[str]) -> str:
        if match[1] == "run":
            return str(folder)
        if match[1] == "step":
            return match[0] if step is None else str(step)
        return _newest(match[2], folder)

    return tuple(_PLACEHOLDER.sub(filled, word) for word in words)


def _newest(pattern: str, folder: Path) -> str:
    found = [path for path in glob.glob(pattern, root_dir=folder, recursive=True) if (folder / path).exists()]
    if not found:
        raise NothingFoundError(pattern)
    return max(found, key=lambda path: (os.stat(folder / path).st_mtime_ns, _natural(path)))


def _natural(path: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdigit() else (-1, part) for part in _NUMBERS.split(path)]
