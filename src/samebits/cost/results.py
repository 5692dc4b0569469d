"""What is asked and what was measured."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from samebits.determinism.control import Control
    from samebits.recording.runner import Target


@dataclass(frozen=True, slots=True)
class CostRequest:
    """What is to be measured.

    Args:
        target: the script or module and its arguments.
        folder: where the files of times go.
        control: the switches as they would be set.
        rounds: how often each variant is run.
        steps: how many steps of the script are timed.
        warmup: how many steps before them are not.
        output: where the script's standard output goes: `inherit` or `stderr`.
    """

    target: Target
    folder: Path
    control: Control
    rounds: int = 5
    steps: int = 20
    warmup: int = 3
    output: str = "stderr"


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to run the script.

    Args:
        name: shown to the user.
        control: None for a run without control.
        over: name of the variant that it is compared with.
        why: what the user should know of it.
    """

    name: str
    control: Control | None
    over: str = "off"
    why: str = ""


@dataclass(frozen=True, slots=True)
class Cost:
    """What one variant costs.

    Args:
        variant: what was measured.
        seconds: median time of a step, one for each round.
        ratios: of that time to the time of the variant it is compared with, in the same round.
        failure: why it could not be measured; empty if it could.
    """

    variant: Variant
    seconds: tuple[float, ...] = ()
    ratios: tuple[float, ...] = ()
    failure: str = ""

    @property
    def ratio(self) -> float:
        """Median over the rounds."""
        return statistics.median(self.ratios)

    @property
    def spread(self) -> tuple[float, float]:
        """Least and greatest of the rounds."""
        return min(self.ratios), max(self.ratios)


@dataclass(frozen=True, slots=True)
class CostReport:
    """All that was measured.

    Args:
        request: what was asked.
        costs: `off`, `off again` (how much two equal variants differ: the noise), `on`, then each switch.
        left_out: switches that were not measured: name, reason.
        steps: how many steps the medians are over.
        interrupted: whether the user ended it; `request` has the rounds that were made.
    """

    request: CostRequest
    costs: tuple[Cost, ...]
    left_out: tuple[tuple[str, str], ...] = field(default=())
    steps: int = 0
    interrupted: bool = False

    @property
    def noise(self) -> float:
        """By how much the ratio of two equal variants strays from 1, at most."""
        again = next((cost for cost in self.costs if cost.variant.name == AGAIN), None)
        return max((abs(ratio - 1) for ratio in again.ratios), default=0.0) if again else 0.0


OFF, AGAIN, ON = "off", "off again", "on"
