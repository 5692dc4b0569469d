"""What a check against a lock file shows: frozen values for the report."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from samebits._text.str_enum import StrEnum
from samebits.comparison.unread_data import UnknownFiles

if TYPE_CHECKING:
    from samebits.commands.lock.entry import LockEntry, Mismatch
    from samebits.commands.lock.old_code import Commit
    from samebits.commands.lock.recipe import LockRun
    from samebits.comparison.environments import EnvironmentDifference
    from samebits.comparison.results import Finding, Verdict
    from samebits.verification import Verification


class Blame(StrEnum):
    """Whose it is that a run does not give the bits of its lock."""

    CHANGE = "change"
    """The user's change of the code, or of data that is in the repository."""
    DATA = "data"
    """The data that the run read."""
    PLATFORM = "platform"
    """The machine, torch, or another package: the same code gives other bits here."""
    BOTH = "change-and-platform"
    """The old code gives other bits than the lock here, and the new code gives others again."""
    NONDETERMINISM = "nondeterminism"
    """Two runs of the same code on this machine differ."""
    UNDECIDED = "undecided"
    """More than one of them is possible, and the old code could not be run to tell them apart."""
    UNRECORDED = "unrecorded"
    """Something that a lock does not hold, such as a file that no record sees."""
    CHANGE_AND_UNRECORDED = "change-and-unrecorded"
    """Such a thing, and the user's change: the old code gives other bits than the lock and the new code."""


class OldCode(StrEnum):
    """What the code of the lock gave here, where that is not the bits of the lock."""

    SAME = "same"
    """The bits that the code as it is gives."""
    OTHERS = "others"
    """Others than that: the change has an effect."""
    CHANCE = "chance"
    """Others from time to time."""


class Beginning(StrEnum):
    """How the bits part at the first operation that differs."""

    COMPUTED = "computed"
    """It computed other bits from the same ones."""
    ENTERED = "entered"
    """Values came in from outside there."""
    OPEN = "open"
    """It cannot be told."""


class Proof(enum.Enum):
    """How a blame was found."""

    TRIED = "tried"
    """Runs showed it."""
    INFERRED = "inferred"
    """Nothing else that a lock holds is different."""


class Obstacle(StrEnum):
    """Why the old code was not run, or gave no answer."""

    NO_GIT = "no-git"
    """The lock file is in no repository."""
    GIT_MISSING = "git-missing"
    """There is no git to ask."""
    DISTRUSTED = "distrusted"
    """Git refuses the repository, which another user owns."""
    SHALLOW = "shallow"
    NO_COMMIT = "no-commit"
    OLD_CODE_FAILED = "old-code-failed"


class Relation(StrEnum):
    """What the commit that gives the bits of the lock is to the one that does not."""

    PARENT = "parent"
    """Its only parent; of the working tree, the commit that is checked out."""
    MERGE = "merge"
    """One of its parents. The lines are those in which the merge differs from that one."""
    APART = "apart"
    """No parent: the code of the commits between them does not run, or the history was written anew."""


@dataclass(frozen=True, slots=True)
class Hunk:
    """Consecutive lines of a file that a change replaced.

    Args:
        file: relative to the root of the repository.
        line: number of the first line in the changed file, from 1.
        before: the old lines.
        after: the new ones.
    """

    file: str
    line: int
    before: tuple[str, ...]
    after: tuple[str, ...]


@dataclass(frozen=True)
class Change:
    """The change that made the bits others.

    Args:
        commit: that made it, or up to which it was made; None for one that is not committed.
        good: the commit before it, whose bits are those of the lock.
        hunks: its parts: only those whose reversal brings the bits of the lock back, where there are some.
        proof: whether such a reversal was tried and brought them back.
        others: how many further hunks can have an effect and were not told.
        files: files that differ and are no text.
        relation: of the good commit to the other.
    """

    commit: Commit | None
    good: Commit
    hunks: tuple[Hunk, ...]
    proof: Proof
    others: int = 0
    files: tuple[str, ...] = ()
    relation: Relation = Relation.PARENT


@dataclass(frozen=True, slots=True)
class RestoredSetting:
    """A setting with the value that it had when the lock was made.

    Args:
        name: of the environment variable.
        value: that it had; None where it was not set.
    """

    name: str
    value: str | None


@dataclass(frozen=True)
class EntryResult:
    """The check of one entry of a lock file.

    Args:
        entry: the entry.
        run: the run that was made; None where none could be.
        verdict: whether it gave the bits of the lock.
        error: why it could not be judged, with its slug; empty otherwise.
        mismatch: the first step that differs.
        blame: whose it is; None where nobody asked or nothing differs.
        proof: how that was found.
        platform: differences between the environments that are no input, the likeliest first.
        inputs: code, data and other inputs that differ.
        unknown: data files that cannot be compared.
        obstacles: why the old code gave no answer.
        change: the change of the code.
        settings: with these as in the lock, the bits are those of the lock.
        tried: with these as in the lock, they are not.
        old_code: what the code of the lock gave; None where that was not run, or is the code here.
        begins: how the bits part in `operations`; None where that was not asked or not found.
        operations: the comparison of two runs with every operation, which shows where the difference begins.
        seconds: of all of it.
        lock: path of the lock file; empty for that of a test, which pytest finds.
    """

    entry: LockEntry
    verdict: Verdict
    run: LockRun | None = None
    error: tuple[str, str] = ("", "")
    mismatch: Mismatch | None = None
    blame: Blame | None = None
    proof: Proof = Proof.INFERRED
    platform: tuple[EnvironmentDifference, ...] = ()
    inputs: tuple[EnvironmentDifference, ...] = ()
    unknown: UnknownFiles = field(default_factory=UnknownFiles)
    obstacles: tuple[Obstacle, ...] = ()
    change: Change | None = None
    settings: tuple[RestoredSetting, ...] = ()
    tried: tuple[RestoredSetting, ...] = ()
    old_code: OldCode | None = None
    begins: Beginning | None = None
    operations: Verification | None = None
    seconds: float = 0.0
    lock: str = ""

    @property
    def finding(self) -> Finding | None:
        """The place where the bits part, if it was found."""
        findings = self.operations.comparison.findings if self.operations is not None else ()
        return findings[0] if findings else None
