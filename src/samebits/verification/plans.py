"""What a series of runs is asked for, and what it gives: a plan, a phase, a pair."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from samebits.verification.results import Purpose

if TYPE_CHECKING:
    from samebits.recording.settings import RecordingSettings
    from samebits.verification.results import ScriptRun


class BudgetSpent(Exception):  # noqa: N818 - it is no error
    """The time for explaining a difference is over."""


@dataclass(frozen=True)
class Plan:
    """One run to be made.

    Args:
        name: of its record.
        description: what the user is told of it.
        settings: how it is recorded; the series fills in the record's path.
        purpose: see `ScriptRun`.
        role: which of the compared runs it repeats, from 0: `--stress` perturbs it as that one.
        limit_s: seconds after which it is ended; None for no limit of its own.
        interventions: names of the interventions that it has beside the request's.
        more: how many runs are expected to follow it before the question that it belongs to is answered.
    """

    name: str
    description: str
    settings: RecordingSettings
    purpose: Purpose = Purpose.COMPARE
    role: int = 0
    limit_s: float | None = None
    interventions: tuple[str, ...] = ()
    more: int = 0


@dataclass(frozen=True)
class Phase:
    """The next runs, as the status line shows them.

    Args:
        description: which run it is.
        shows_output: whether the script's output is shown.
        number: of the run, among all that were made.
        runs: how many are made at the same time; it is the first of them.
        seconds_left: about how long it takes until the question that it belongs to is answered; None where
            that is not known.
    """

    description: str
    shows_output: bool = False
    number: int = 1
    seconds_left: float | None = None
    runs: int = 1

    def text(self) -> str:
        """Return the text of the status line."""
        last = self.number + self.runs - 1
        joint = "and" if self.runs == 2 else "to"
        numbers = f"runs {self.number} {joint} {last}" if self.runs > 1 else f"run {self.number}"
        number = "" if self.shows_output else f" · {numbers}"
        left = "" if self.seconds_left is None else f" · about {self.seconds_left:.0f} s left"
        return f"{self.description}{number}{left}"


@dataclass(frozen=True)
class Pair:
    """Two runs to be compared."""

    first: ScriptRun
    second: ScriptRun
