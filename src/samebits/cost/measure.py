"""Times the variants of a run, interleaved."""

from __future__ import annotations

import json
import os
import statistics
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from samebits.cost.results import Cost, CostReport
from samebits.cost.variants import base_variants, switch_variants
from samebits.determinism.switches import environment_for, holds_layout
from samebits.errors import SamebitsError
from samebits.recording.launch import Launch, deliver, launch
from samebits.recording.settings import RecordingSettings
from samebits.recording.supervision import CHILD_GRACE_S
from samebits.verification.fitness import ended_words

if TYPE_CHECKING:
    from collections.abc import Callable

    from samebits.cost.results import CostRequest, Variant

_FEWEST_STEPS = 3


@dataclass(frozen=True, slots=True)
class Timing:
    """One run of one variant.

    Args:
        durations: of its timed steps, in seconds.
        control: what its control says of itself.
        failure: why it has no durations; empty if it has.
        too_few: whether that is because the script ran and took too few steps.
    """

    durations: tuple[float, ...]
    control: dict[str, Any]
    failure: str = ""
    too_few: bool = False


def measure_cost(request: CostRequest, announce: Callable[[str], None] | None = None) -> CostReport:
    """Run a script again and again, with all switches off, on, and each one alone, and time its steps.

    The variants take turns, in another order in each round, so that a machine that gets slower slows all of
    them. Each is compared with the variant that it is measured against within the same round.

    Args:
        request: what is measured.
        announce: told what is about to run.

    Raises:
        SamebitsError: the script fails (`cost-script-failed`) or takes too few steps (`cost-no-steps`).
        KeyboardInterrupt: the user ended it before a round was over.
    """
    tell = announce or (lambda _: None)
    runner = _Runner(request)
    tell("finding out which switches change something")
    on = runner.run(base_variants(request.control)[2])
    _check(on, request)
    variables = environment_for(request.control, os.environ).variables
    facts = on.control
    alone, left_out = switch_variants(
        request.control, facts["results"], variables, has_cuda=bool(facts["cuda"])
    )
    variants = (*base_variants(request.control), *alone)
    timings: dict[str, list[Timing]] = {variant.name: [] for variant in variants}
    rounds = 0
    try:
        for number in range(request.rounds):
            for position in range(len(variants)):
                variant = variants[(position + number * 2) % len(variants)]
                tell(f"round {number + 1} of {request.rounds}: {variant.name}")
                timings[variant.name].append(runner.run(variant))
            rounds += 1
    except KeyboardInterrupt:
        if not rounds:
            raise
    whole = {name: timed[:rounds] for name, timed in timings.items()}
    costs = tuple(_cost(variant, whole) for variant in variants)
    measured = replace(request, rounds=rounds)
    return CostReport(measured, costs, left_out, len(on.durations), interrupted=rounds < request.rounds)


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
        outcome = launch(
            Launch(
                request.target, settings.to_json(), variables, request.output, grace_s=CHILD_GRACE_S,
                fixed_layout=holds_layout(control),
            )
        )  # fmt: skip
        deliver(outcome)
        hint = "; --output shows what it printed" if request.output == "nothing" else ""
        return self._read(outcome.status, hint)

    def _read(self, status: int, hint: str) -> Timing:
        ending = f"the script ended {ended_words(status)}{hint}"
        try:
            seen = json.loads(self._file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return Timing((), {}, ending)
        if seen["status"] == "failed":
            return Timing((), seen["control"], seen["failure"] or ending)
        times = seen["times"][self._request.warmup :]
        durations = tuple(after - before for before, after in pairwise(times))
        if len(durations) >= _FEWEST_STEPS:
            return Timing(durations, seen["control"])
        if status:
            return Timing(durations, seen["control"], ending)
        return Timing(durations, seen["control"], f"only {len(seen['times'])} steps were taken", too_few=True)


def _check(first: Timing, request: CostRequest) -> None:
    if not first.failure:
        return
    message = f"the cost cannot be measured: {first.failure}"
    if not first.too_few:  # it failed: how many steps it would have taken is not known
        raise SamebitsError(message, slug="cost-script-failed")
    message += (
        f"; expected a script that takes at least {request.warmup + _FEWEST_STEPS + 1} steps (of an "
        "optimizer, or backward passes without one)"
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
