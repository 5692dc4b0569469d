"""Times the variants of a run, interleaved."""

from __future__ import annotations

import json
import os
import statistics
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from samebits.cost.results import OFF, ON, Cost, CostReport, Variant
from samebits.cost.variants import base_variants, switch_variants
from samebits.determinism.switches import environment_for
from samebits.errors import SamebitsError
from samebits.recording.launch import Launch, launch
from samebits.recording.settings import RecordingSettings

if TYPE_CHECKING:
    from collections.abc import Callable

    from samebits.cost.results import CostRequest

_FEWEST_STEPS = 3


@dataclass(frozen=True, slots=True)
class Timing:
    """One run of one variant.

    Args:
        durations: of its timed steps, in seconds.
        control: what its control says of itself.
        failure: why it has no durations; empty if it has.
    """

    durations: tuple[float, ...]
    control: dict[str, Any]
    failure: str = ""


def measure_cost(request: CostRequest, announce: Callable[[str], None] | None = None) -> CostReport:
    """Run a script again and again, with all switches off, on, and each one alone, and time its steps.

    The variants take turns, in another order in each round, so that a machine that gets slower slows all of
    them. Each is compared with the variant that it is measured against within the same round.

    Args:
        request: what is measured.
        announce: told what is about to run.

    Raises:
        SamebitsError: the script cannot be run or takes too few steps; `cost-no-steps`.
    """
    tell = announce or (lambda _: None)
    runner = _Runner(request)
    tell("finding out which switches change something")
    off, on, *_ = (runner.run(variant) for variant in _first_pair(request))
    _check(off, request)
    alone, left_out = ((), ()) if on.failure else switch_variants(request.control, *_changes(off, on))
    variants = (*base_variants(request.control), *alone)
    timings: dict[str, list[Timing]] = {variant.name: [] for variant in variants}
    for number in range(request.rounds):
        for position in range(len(variants)):
            variant = variants[(position + number * 2) % len(variants)]
            tell(f"round {number + 1} of {request.rounds}: {variant.name}")
            timings[variant.name].append(runner.run(variant))
    costs = tuple(_cost(variant, timings) for variant in variants)
    return CostReport(request, costs, left_out, len(off.durations))


def _first_pair(request: CostRequest) -> tuple[Variant, Variant]:
    """A run in which control only looks, and one in which it acts."""
    by_name = {variant.name: variant for variant in base_variants(request.control)}
    watching = replace(request.control, seed=None, switches=(), all_switches=False, workers=False)
    return replace(by_name[OFF], control=watching), by_name[ON]


def _changes(off: Timing, on: Timing) -> tuple[dict[str, str], dict[str, Any]]:
    """Switches that have another value under control, and what control says of all."""
    before, after = off.control.get("values", {}), on.control.get("values", {})
    changed = {name: value for name, value in after.items() if value != before.get(name)}
    return changed, on.control.get("switches", {})


class _Runner:
    """Runs variants in fresh processes."""

    def __init__(self, request: CostRequest) -> None:
        self._request = request
        self._file = Path(request.folder) / "times.json"

    def run(self, variant: Variant) -> Timing:
        """Run one variant once."""
        request, control = self._request, variant.control
        settings = RecordingSettings(
            record=str(self._file),
            level="clock",
            max_steps=request.warmup + request.steps + 1,
            control=control,
        )
        variables = {} if control is None else environment_for(control, os.environ).variables
        self._file.unlink(missing_ok=True)
        outcome = launch(Launch(request.target, settings.to_json(), variables, request.output))
        return self._read(f"exit status {outcome.status}")

    def _read(self, ending: str) -> Timing:
        try:
            seen = json.loads(self._file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return Timing((), {}, ending)
        if seen["status"] == "failed":
            return Timing((), seen["control"], seen["failure"] or ending)
        times = seen["times"][self._request.warmup :]
        durations = tuple(after - before for before, after in zip(times, times[1:], strict=False))
        failure = "" if len(durations) >= _FEWEST_STEPS else f"only {len(seen['times'])} steps were taken"
        return Timing(durations, seen["control"], failure)


def _check(first: Timing, request: CostRequest) -> None:
    if not first.failure:
        return
    message = (
        f"the cost cannot be measured: {first.failure}; expected a script that takes at least "
        f"{request.warmup + _FEWEST_STEPS + 1} steps (optimizer steps, or backward passes without an optimizer)"
    )
    raise SamebitsError(message, slug="cost-no-steps")


def _cost(variant: Variant, timings: dict[str, list[Timing]]) -> Cost:
    """What a variant costs beside the one that it is compared with."""
    own, other = timings[variant.name], timings[variant.over]
    failure = next((timing.failure for timing in (*own, *other) if timing.failure), "")
    if failure:
        return Cost(variant, failure=failure)
    seconds = tuple(statistics.median(timing.durations) for timing in own)
    base = tuple(statistics.median(timing.durations) for timing in other)
    return Cost(variant, seconds, tuple(a / b for a, b in zip(seconds, base, strict=True)))
