"""Finds two neighbours in a history: a commit that gives the bits of a lock, and a child that does not."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from samebits.commands.lock.outcome import Relation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from samebits.commands.lock.old_code import Commit, Repository

    Gives = Callable[[str, Mapping[str, str | None]], bool | None]

_MOST_FAILURES = 8  # of commits whose code does not run, on the way to one commit
_MOST_LIKE = 100  # commits that are compared with one that is not in the history
_MOST_STARTS = 3  # of them that are run
_MOST_BASES = 3  # of two commits


@dataclass(frozen=True, slots=True)
class Step:
    """Two trees, between which the bits became others.

    Args:
        good: gives the bits of the lock.
        bad: does not; None for the working tree.
        relation: of the good one to the bad one.
    """

    good: Commit
    bad: Commit | None
    relation: Relation


class Search:
    """Looks for the step in a history at which the bits became others.

    A commit is only named if its code was run, and that of a parent of it, too: a commit beside both, on
    another branch, has other code and tells nothing.

    Args:
        repository: of the code.
        gives: tells whether a tree gives the bits of the lock; None if its code does not run.
    """

    def __init__(self, repository: Repository, gives: Gives) -> None:
        self._repository = repository
        self._gives = gives
        self._known: dict[str, bool | None] = {}

    def step_after(self, old: Commit) -> Step:
        """Return the step between a commit, whose code gives the bits of the lock, and the working tree."""
        self._known[old.sha] = True
        (head,) = self._repository.history("-1", "HEAD")
        is_changed = self._repository.is_changed
        if not is_changed and head == old:  # what git does not track can be different
            return Step(old, None, Relation.PARENT)
        if not is_changed:
            self._known[head.sha] = False  # it was run as the working tree
        elif self._is_good(head):
            return Step(head, None, Relation.PARENT)
        last = [head] if self._runs(head) else [head, None]
        for start in self._starts(old, head):
            return self._between([*self._path(start, head)[:-1], *last])
        return Step(old, last[-1], Relation.APART)

    def _starts(self, old: Commit, head: Commit) -> Iterable[Commit]:
        """Yield commits of the history of one that give the bits of the lock.

        After a rebase or a squash, the old commit is in no history. Those whose files are most like its own
        are run instead.
        """
        if self._repository.is_ancestor(old.sha, head.sha):
            return [old]
        likely = [
            *self._repository.bases(old.sha, head.sha),
            *self._repository.history(f"-{_MOST_LIKE}", f"{old.sha}..{head.sha}"),
        ]
        others = [each for each in likely if each != head]
        others.sort(key=lambda each: self._repository.distance(old.sha, each.sha))
        return filter(self._is_good, others[:_MOST_STARTS])

    def _between(self, path: Sequence[Commit | None]) -> Step:
        """Return the step in a path from parents to children, whose first commit is good and last bad."""
        good, bad = 0, len(path) - 1
        while (middle := self._middle(path, good, bad)) is not None:
            if self._is_good(path[middle]):
                good = middle
            else:
                bad = middle
        first, second = path[good], path[bad]
        assert first is not None  # noqa: S101 - only the last can be the working tree, and it is not good
        if bad > good + 1:  # those between them do not run
            return Step(first, second, Relation.APART)
        return Step(first, None, Relation.PARENT) if second is None else self._in_merge(first, second)

    def _middle(self, path: Sequence[Commit | None], good: int, bad: int) -> int | None:
        """Return the place nearest to the middle whose code runs; None if there is none."""
        middle = (good + bad) // 2
        places = sorted(range(good + 1, bad), key=lambda place: abs(place - middle))
        runs = (place for place in islice(places, _MOST_FAILURES) if self._runs(path[place]))
        return next(runs, None)

    def _in_merge(self, good: Commit, bad: Commit) -> Step:
        """Return the step to a commit from a parent of it, or, if that is a merge, one of another branch.

        The branch is guilty if it had the bits of the lock, and lost them before it was merged.
        """
        (parents,) = self._repository.history("-1", bad.sha).values()
        others = [sha for sha in parents if sha != good.sha]
        for other in (commit for sha in others for commit in self._repository.history("-1", sha)):
            if not self._runs(other) or self._is_good(other):
                continue
            bases = self._repository.bases(good.sha, other.sha)[:_MOST_BASES]
            for base in filter(self._is_good, bases):
                return self._between(self._path(base, other))
        return Step(good, bad, Relation.MERGE if others else Relation.PARENT)

    def _path(self, old: Commit, new: Commit) -> list[Commit]:
        """Return a path from a commit to a descendant, each the parent of the next; through first parents."""
        parents = self._repository.history("--ancestry-path", f"{old.sha}..{new.sha}")
        commits = {each.sha: each for each in (*parents, old)}
        path = [new]
        while path[-1] != old:
            path.append(next(commits[sha] for sha in parents[path[-1]] if sha in commits))
        return path[::-1]

    def _is_good(self, commit: Commit | None) -> bool:
        return self._result(commit) is True

    def _runs(self, commit: Commit | None) -> bool:
        return self._result(commit) is not None

    def _result(self, commit: Commit | None) -> bool | None:
        if commit is None:
            return False  # the working tree is what is explained
        if commit.sha not in self._known:
            self._known[commit.sha] = self._gives(commit.sha, {})
        return self._known[commit.sha]
