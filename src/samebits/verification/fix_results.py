"""What came of looking for a patch."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from samebits.comparison.results import Remedy, RemedyTrial

if TYPE_CHECKING:
    from samebits.comparison.results import Finding, LineChange
    from samebits.diagnosis.patches.edits import Patch


@dataclass(frozen=True)
class Fix:
    """A patch, and whether runs with it were identical.

    Args:
        patch: the changes; None where none could be made.
        root: the folder that the diff applies in.
        pairs: how many pairs of runs with it were identical.
        confirmed: whether all were; None where it was not tried.
        still: what still differed with it, in words; empty where nothing did.
        refusals: why places were left alone.
        tried: how many patches were tried.
        diff_file: where the diff was written.
        applied: whether the files were changed.
        steps: after how many steps the runs with it were ended; None where they went to their ends.
    """

    patch: Patch | None
    root: str
    pairs: int = 0
    confirmed: bool | None = None
    still: str = ""
    refusals: tuple[str, ...] = ()
    tried: int = 0
    diff_file: str = ""
    applied: bool = False
    steps: int | None = None

    @property
    def diff(self) -> bytes:
        """The unified diff; empty without a patch."""
        return b"" if self.patch is None else self.patch.diff(self.root)

    def words(self) -> str:
        """Whether it was confirmed, in words."""
        if self.patch is None:
            return "no patch could be made"
        if self.confirmed:
            return f"confirmed by {self.pairs} pair" + ("" if self.pairs == 1 else "s")
        return f"not confirmed: {self.still or 'it was not tried'}"

    def shown(self) -> str:
        """What runs with it showed where they were identical."""
        pairs = (
            "1 pair of runs was" if self.pairs == 1 else f"{self.pairs} of {self.pairs} pairs of runs were"
        )
        return f"{pairs} identical" + ("" if self.steps is None else f" in the first {self.steps} steps")

    def remedy(self, finding: Finding) -> Remedy:
        """The finding's remedy with what was learnt here: the whole patch, and what runs with it showed."""
        known = finding.remedy or Remedy("")
        if self.patch is None or (known.trial is not None and self.confirmed is None):
            return known
        if known.trial is not None and not self.confirmed:  # what the pins have shown stays, the lines do not
            return replace(known, before="", after="", changes=())
        shown = (known.before, known.after)
        before, after = shown if known.after and known.after in self._added() else self.patch.first
        text = known.text or self.patch.why[0]
        trial = None
        if self.confirmed is not None:
            trial = RemedyTrial("change", self.confirmed, self.pairs, steps=self.steps)
        return Remedy(text, known.controls, before, after, self._changes(), trial)

    def speaks_for(self, finding: Finding) -> bool:
        """Whether it is the remedy of this finding too: with it, nothing differed any more."""
        return bool(self.confirmed) and finding.remedy is not None

    def _changes(self) -> tuple[LineChange, ...]:
        return () if self.patch is None else self.patch.changes()

    def _added(self) -> set[str]:
        """The lines that the patch adds, without indentation."""
        return {line.strip() for change in self._changes() for line in change.after}
