"""What came of looking for a patch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from samebits.comparison.results import Remedy

if TYPE_CHECKING:
    from samebits.comparison.results import Finding
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

    def remedy(self, finding: Finding) -> Remedy:
        """The finding's remedy with what was learnt here."""
        known = finding.remedy or Remedy("")
        if self.patch is None or (known.confirmed and not self.confirmed):
            return known  # what the pins have shown of it stays
        shown = (known.before, known.after)
        before, after = shown if known.after and known.after in self._added() else self.patch.first
        text = known.text or self.patch.why[0]
        return Remedy(text, self.confirmed, known.controls, before, after, self.pairs)

    def _added(self) -> set[str]:
        """The lines that the patch adds, without indentation."""
        lines = self.diff.decode(errors="replace").splitlines()
        return {line[1:].strip() for line in lines if line.startswith("+")}
