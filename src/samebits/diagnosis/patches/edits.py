"""Splices of text, patches made of them, and the diff of a patch."""

from __future__ import annotations

import difflib
import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from samebits.comparison.results import LineChange

if TYPE_CHECKING:
    from collections.abc import Iterable

    from samebits.diagnosis.patches.source_file import SourceFile

_LINE_END = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True)
class Edit:
    """One splice.

    Args:
        start: offset into the file's text as UTF-8.
        end: the first offset behind what is replaced.
        text: what stands there then, with a line feed as line end.
    """

    start: int
    end: int
    text: str


@dataclass(frozen=True)
class Change:
    """A change at one place of a file, with what it needs elsewhere.

    Args:
        edits: in the file.
        why: what it does, for the user.
        line: the user's line.
        needs: such as `import:zlib` in the same file, or `seed:random` in the script.
    """

    edits: tuple[Edit, ...]
    why: str
    line: int
    needs: tuple[str, ...] = ()


@dataclass(frozen=True)
class PatchedFile:
    """A file before and after a patch."""

    before: SourceFile
    after: SourceFile


@dataclass(frozen=True)
class Patch:
    """One way to take a nondeterminism away.

    Args:
        files: those that it changes.
        why: what it does, one line for each change.
        first: the first changed line of the user's, before and after, without indentation.
    """

    files: tuple[PatchedFile, ...]
    why: tuple[str, ...]
    first: tuple[str, str] = ("", "")

    def diff(self, root: str) -> bytes:
        """A unified diff that `git apply` and `patch -p1` take in the folder `root`."""
        return b"".join(unified(file.before, file.after, root) for file in self.files)

    def changes(self) -> tuple[LineChange, ...]:
        """Every line that it changes, adds or removes."""
        return tuple(change for file in self.files for change in line_changes(file))


def spliced(file: SourceFile, edits: Iterable[Edit]) -> SourceFile:
    """The file with some splices made; of two that overlap the inner or later one is left out."""
    raw, done = file.text.encode(), 0
    parts: list[bytes] = []
    for edit in sorted(dict.fromkeys(edits), key=lambda e: (e.start, e.start != e.end, -e.end)):
        if edit.start < done:
            continue
        parts += [raw[done : edit.start], edit.text.replace("\n", file.newline).encode()]
        done = edit.end
    return file.with_text(b"".join([*parts, raw[done:]]).decode())


def unified(before: SourceFile, after: SourceFile, root: str) -> bytes:
    """The diff of one file."""
    name = os.path.relpath(before.path, root).replace(os.sep, "/")
    tab = "\t" if " " in name else ""  # else the name ends at the blank
    old, new = (f"{side}/{name}{tab}".encode() for side in "ab")
    lines = difflib.diff_bytes(difflib.unified_diff, _lines(before.data), _lines(after.data), old, new)
    return b"".join(
        line if line.endswith(b"\n") else line + b"\n\\ No newline at end of file\n" for line in lines
    )


def line_changes(file: PatchedFile) -> list[LineChange]:
    """The lines of a file that a patch changes, adds or removes, in order."""
    old, new = _texts(file.before), _texts(file.after)
    blocks = difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    return [
        LineChange(file.before.path, i1 + 1, tuple(old[i1:i2]), tuple(new[j1:j2]))
        for tag, i1, i2, j1, j2 in blocks
        if tag != "equal"
    ]


def changed_line(before: SourceFile, after: SourceFile) -> tuple[str, str]:
    """The first line that was changed rather than added, before and after; the first added one otherwise."""
    old, new = _texts(before), _texts(after)
    added = ("", "")
    for tag, i1, i2, j1, j2 in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "replace":
            return _likest(old[i1:i2], new[j1:j2])
        if tag == "insert" and added == ("", ""):
            lines = [line.strip() for line in new[j1:j2] if line.strip()]
            added = ("", next((line for line in lines if not line.startswith("import ")), added[1]))
        if tag == "delete" and added == ("", ""):
            added = (next((line.strip() for line in old[i1:i2] if line.strip()), ""), "")
    return added


def _likest(old: list[str], new: list[str]) -> tuple[str, str]:
    """The first of some lines that were changed, and what became of it: others may have been added before."""
    first = next((line for line in old if line.strip()), old[0])
    ratios = [difflib.SequenceMatcher(None, first, line, autojunk=False).ratio() for line in new]
    return first.strip(), new[ratios.index(max(ratios))].strip()


def _texts(file: SourceFile) -> list[str]:
    """The lines as Python counts them: `str.splitlines` ends them at a form feed too."""
    lines = _LINE_END.split(file.text)
    return lines if lines[-1] else lines[:-1]


def _lines(data: bytes) -> list[bytes]:
    """As git counts lines: a carriage return is part of its line."""
    parts = data.split(b"\n")
    return [part + b"\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])
