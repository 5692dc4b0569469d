"""Finds the commit, and in it the lines, that made a run give other bits than its lock."""

from __future__ import annotations

import ast
import difflib
import itertools
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from samebits._text.secret_names import MASK
from samebits.commands.lock.history import Search
from samebits.commands.lock.old_code import WORKING_TREE
from samebits.commands.lock.outcome import Change, Hunk, Proof

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from samebits._text.masking import Masker
    from samebits.commands.lock.history import Gives
    from samebits.commands.lock.old_code import Commit, Repository

_MOST_RUNS = 24  # to find the lines
_MOST_HUNKS = 5
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_NO_CODE = (".md", ".rst", ".lock", ".gitignore", ".ipynb")


def find_change(repository: Repository, old: Commit, gives: Gives) -> Change:
    """Return the first change after a commit with which the bits are no longer those of the lock.

    Args:
        repository: of the code.
        old: a commit whose code gives the bits of the lock here; the working tree gives others.
        gives: tells whether the code of a commit, with other text for some files (by name, relative to the
            root), gives the bits of the lock; None if it does not run.
    """
    step = Search(repository, gives).step_after(old)
    good, bad = step.good, step.bad
    base = bad.sha if bad is not None else WORKING_TREE
    places = places_between(repository, good.sha, base)

    def brings_back(some: Sequence[Hunk]) -> bool:
        return gives(base, _as_before(repository, (good.sha, base), some)) is True

    for hunks in dict.fromkeys((places.likely, places.all)):
        guilty = smallest(hunks, brings_back, _MOST_RUNS)
        if guilty:
            return Change(bad, good, guilty, Proof.TRIED, relation=step.relation)
    hunks = places.likely or places.all
    shown = hunks[:_MOST_HUNKS]
    others = len(places.all) - len(shown)
    files = places.no_text[:_MOST_HUNKS]
    return Change(bad, good, shown, Proof.INFERRED, others, files, step.relation)


def claims_of(repository: Repository, change: Change, gives: Gives) -> tuple[Callable[[], bool], ...]:
    """Return what a change rests on: each makes a run, and tells whether that can be so.

    Args:
        repository: of the code.
        change: as `find_change` returned it.
        gives: as there.
    """
    good, base = change.good.sha, change.commit.sha if change.commit is not None else WORKING_TREE
    tree, texts = good, {}
    if change.proof is Proof.TRIED:
        tree, texts = base, _as_before(repository, (good, base), change.hunks)
    return (lambda: gives(base, {}) is not True), (lambda: gives(tree, texts) is not False)


@dataclass(frozen=True)
class Places:
    """What differs between two trees.

    Args:
        all: every changed place in a text.
        likely: those that can have an effect as far as their text and the name of their file tell: no
            comments, blank lines or pages of documentation. A script can read such a file all the same.
        no_text: names of files that are no text.
    """

    all: tuple[Hunk, ...]
    likely: tuple[Hunk, ...]
    no_text: tuple[str, ...]


def places_between(repository: Repository, good: str, base: str) -> Places:
    """Return what differs between two trees, apart from lock files.

    Args:
        repository: of both.
        good: a commit.
        base: a later commit; empty for the working tree.
    """
    names = repository.differ(good, base)
    texts = {name: (repository.text_at(good, name), repository.text_at(base, name)) for name in names}
    no_text = {
        name
        for name, both in texts.items()
        if any(
            text is None and repository.has(tree, name) for tree, text in zip((good, base), both, strict=True)
        )
    }
    hunks = {name: tuple(_hunks(name, *texts[name])) for name in names if name not in no_text}
    likely = tuple(
        each for name, some in hunks.items() for each in some if not _is_idle(texts[name][1], each)
    )
    return Places(tuple(itertools.chain(*hunks.values())), likely, tuple(sorted(no_text)))


def _as_before(
    repository: Repository, trees: tuple[str, str], hunks: Sequence[Hunk]
) -> dict[str, str | None]:
    """Return the text of the files of some hunks, with these taken back; None for one that was not there."""
    good, base = trees
    return {
        name: reverted(repository.text_at(base, name) or "", [each for each in hunks if each.file == name])
        if repository.has(good, name)
        else None
        for name in dict.fromkeys(each.file for each in hunks)
    }


def masked_change(change: Change, masker: Masker, repository: Repository) -> Change:
    """Return a change for reports, which others read: secrets in its lines are masked.

    Args:
        change: as it was tried.
        masker: knows the secrets of this process.
        repository: of the code. What makes a line a secret may stand above it, in one that was not changed.
    """

    def masked(commit: Commit) -> Commit:
        return replace(commit, subject=masker.text(commit.subject))

    base = change.commit.sha if change.commit is not None else WORKING_TREE
    hunks = tuple(
        _masked_hunk(each, repository.text_at(base, each.file) or "", masker) for each in change.hunks
    )
    commit = None if change.commit is None else masked(change.commit)
    files = tuple(map(masker.text, change.files))
    return replace(change, commit=commit, good=masked(change.good), hunks=hunks, files=files)


def _masked_hunk(hunk: Hunk, text: str, masker: Masker) -> Hunk:
    """Return a hunk of a file that has the given text now."""

    def cut(whole: str, lines: tuple[str, ...]) -> tuple[str, ...]:
        shown = _lines(masker.file(hunk.file, whole))
        if len(shown) != len(_lines(whole)):
            return tuple(f"{MASK}\n" for _ in lines)
        return shown[hunk.line - 1 : hunk.line - 1 + len(lines)]

    before, after = cut(reverted(text, (hunk,)), hunk.before), cut(text, hunk.after)
    return Hunk(masker.text(hunk.file), hunk.line, before, after)


def smallest(
    hunks: Sequence[Hunk], brings_back: Callable[[Sequence[Hunk]], bool], most: int
) -> tuple[Hunk, ...]:
    """Return few hunks whose reversal brings the bits of the lock back; none where that of all does not.

    The method is delta debugging (Zeller and Hildebrandt, *Simplifying and Isolating Failure-Inducing Input*,
    2002): parts of the hunks are tried, then what is left without a part, with ever smaller parts.

    Args:
        hunks: in the order of the files and lines.
        brings_back: runs with some hunks taken back.
        most: how often that is called at most. What is left then still brings the bits back, and may hold
            hunks that do not matter.
    """
    if not hunks or not brings_back(hunks):
        return ()
    left, number, runs = list(hunks), 2, 1
    while len(left) > 1:
        parts = _parts(left, number)
        others = [[each for each in left if each not in part] for part in parts]
        for some in parts if number == 2 else [*parts, *others]:
            if runs >= most:
                return tuple(left)
            runs += 1
            if brings_back(some):
                number = 2 if some in parts else max(number - 1, 2)
                left = some
                break
        else:
            if number >= len(left):
                break
            number = min(2 * number, len(left))
    return tuple(left)


def _parts(hunks: Sequence[Hunk], number: int) -> list[list[Hunk]]:
    borders = [len(hunks) * place // number for place in range(number + 1)]
    return [list(hunks[a:b]) for a, b in itertools.pairwise(borders)]


def reverted(text: str, hunks: Sequence[Hunk]) -> str:
    """Return a changed text with some hunks taken back.

    Args:
        text: with the change.
        hunks: of this file, from top to bottom.
    """
    lines = list(_lines(text))
    for hunk in reversed(hunks):
        start = hunk.line - 1
        lines[start : start + len(hunk.after)] = hunk.before
    return "".join(lines)


def _hunks(name: str, before: str | None, after: str | None) -> Iterator[Hunk]:
    """Yield the changed places of a text; of one that was added or removed the whole."""
    old, new = _lines(before), _lines(after)
    if before is None or after is None:
        yield Hunk(name, 1, old, new)
        return
    for tag, a, b, c, d in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "equal":
            yield Hunk(name, c + 1, old[a:b], new[c:d])


def _lines(text: str | None) -> tuple[str, ...]:
    """Return the lines as git and Python count them; `str.splitlines` would also end one at a form feed."""
    return () if text is None else tuple(_LINE.findall(text))


def _is_idle(text: str | None, hunk: Hunk) -> bool:
    """Tell whether a hunk changes only documentation, comments, blank lines or layout.

    Args:
        text: of the changed file; None for one that was removed.
        hunk: a place in it.
    """
    if hunk.file.endswith(_NO_CODE):
        return True
    if text is None or (hunk.line == 1 and hunk.before == () and hunk.after == _lines(text)):
        return False  # a whole file
    if not hunk.file.endswith(".py"):
        return not "".join((*hunk.before, *hunk.after)).strip()
    try:
        return ast.dump(ast.parse(text)) == ast.dump(ast.parse(reverted(text, (hunk,))))
    except (SyntaxError, ValueError, RecursionError):
        return False
