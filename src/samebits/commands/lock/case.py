"""A run that does not give the bits of its lock, and what is needed to find out why."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from samebits.commands.lock.entry import first_mismatch, here_as_locked

if TYPE_CHECKING:
    from collections.abc import Callable

    from samebits.commands.lock.entry import LockEntry, LockRow
    from samebits.commands.lock.file import LockFile
    from samebits.commands.lock.outcome import EntryResult
    from samebits.commands.lock.recipe import LockRun, Recipe

    Announce = Callable[[str], None]


@dataclass(frozen=True)
class Case:
    """A mismatch that is to be explained.

    Args:
        lock: the lock file.
        recipe: of the run; it went to its end.
        result: what is known.
        announce: told what is about to run.
    """

    lock: LockFile
    recipe: Recipe
    result: EntryResult
    announce: Announce

    @property
    def entry(self) -> LockEntry:
        """The entry."""
        return self.result.entry

    @property
    def environment_here(self) -> dict[str, Any]:
        """The environment of the run, with what a lock holds of it."""
        made = self.result.run
        return {} if made is None or made.info is None else here_as_locked(made.info).environment

    @property
    def short(self) -> Recipe:
        """The recipe of a run that ends once it has shown whether it gives the bits of the lock."""
        mismatch = self.result.mismatch
        last = None if mismatch is None else mismatch.last_step
        most = self.entry.max_steps if last is None else last + 1
        return replace(self.recipe, max_steps=most, output="nothing")

    @property
    def last_step(self) -> int | None:
        """The last step that is compared; None for the whole run."""
        return None if self.result.mismatch is None else self.result.mismatch.last_step

    def gives_lock(self, made: LockRun) -> bool:
        """Tell whether a run gives the bits of the lock, as far as they are compared."""
        return not made.failed and self._differ(self.entry.rows, made) is None

    def gives_same(self, made: LockRun) -> bool:
        """Tell whether a run gives the bits of the one that does not match the lock."""
        first = self.result.run
        return first is not None and not made.failed and self._differ(first.rows, made) is None

    def _differ(self, rows: tuple[LockRow, ...], made: LockRun) -> object:
        return first_mismatch(rows, made.rows, up_to=self.last_step)
