"""Times what each switch costs on the user's own script, the variants interleaved."""

from __future__ import annotations

import json
import os
import platform
import statistics
import tempfile
from dataclasses import dataclass, replace
from importlib import metadata
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from samebits._text.printable import exit_text
from samebits._text.str_enum import StrEnum
from samebits.commands.doctor.environment import readers_of
from samebits.errors import SamebitsError
from samebits.recording.launch import Launch, deliver, launch
from samebits.recording.settings import RecordingSettings
from samebits.recording.supervision import CHILD_GRACE_S
from samebits.records.kinds import Level
from samebits.switches.switch import When
from samebits.switches.table import environment_for, holds_layout, switch_named

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from samebits.executors.surroundings import Surroundings
    from samebits.recording.runner import Target
    from samebits.switches.switch import Control


@dataclass(frozen=True, slots=True)
class CostRequest:
    """The measurement that is asked for.

    Args:
        target: the script or module and its arguments.
        folder: of the files with times.
        control: the switches as a controlled run would set them.
        rounds: how often each variant is run.
        steps: how many steps of the script are timed.
        warmup: how many steps before them are not.
        output: destination of the script's standard output: `stderr` or `nothing`.
    """

    target: Target
    folder: Path
    control: Control
    rounds: int
    steps: int
    warmup: int
    output: str


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to run the script.

    Args:
        name: shown to the user.
        control: None for a run without control.
        over: name of the variant that it is compared with.
        why: a remark for the user.
    """

    name: str
    control: Control | None
    over: str = "off"
    why: str = ""


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of one variant.

    Args:
        variant: the measured one.
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


class WhyUnmeasured(StrEnum):
    """Why the cost of a switch is not measured."""

    WATCHED = "watched"
    """It is watched, not set."""
    NOT_COMPILED = "not-compiled"
    """The script compiles nothing."""
    NOT_SET = "not-set"
    """It could not be set, or is not to be; the detail is what its report says."""
    UNCHANGED = "unchanged"
    """It has the wanted value without control too."""
    NO_READER = "no-reader"
    """Only a package reads it that is not installed; the detail is its name."""
    NO_CUDA = "no-cuda"
    """It acts on CUDA only, and there is no CUDA device."""


@dataclass(frozen=True, slots=True)
class Unmeasured:
    """A switch whose cost is not measured.

    Args:
        switch: its name.
        why: the reason.
        detail: what belongs to the reason.
    """

    switch: str
    why: WhyUnmeasured
    detail: str = ""


@dataclass(frozen=True, slots=True)
class CostReport:
    """All results of a measurement.

    Args:
        request: the measurement that was asked for.
        costs: `off`, `off again` (how much two equal variants differ: the noise), `on`, then each switch.
        left_out: switches that were not measured.
        steps: how many steps the medians are over.
        interrupted: whether the user ended it; `request` has the number of complete rounds.
        machine: name of the machine that measured, where that was a job; empty for this one.
    """

    request: CostRequest
    costs: tuple[Cost, ...]
    left_out: tuple[Unmeasured, ...] = ()
    steps: int = 0
    interrupted: bool = False
    machine: str = ""

    @property
    def noise(self) -> float:
        """The largest deviation from 1 of the ratio of two equal variants."""
        again = next((cost for cost in self.costs if cost.variant.name == AGAIN), None)
        return max((abs(ratio - 1) for ratio in again.ratios), default=0.0) if again else 0.0

    def is_clear(self, cost: Cost) -> bool:
        """Tell whether even the round with the least effect lies beyond the noise."""
        low, high = cost.spread
        return low - 1 > self.noise or 1 - high > self.noise


OFF, AGAIN, ON = "off", "off again", "on"
FLAG, FILL, COMPILER_FLAG = "deterministic-algorithms", "fill-uninitialized", "inductor-deterministic"


def base_variants(control: Control) -> tuple[Variant, ...]:
    """Return the variants without control, twice to show the noise, and with everything on."""
    return (
        Variant(OFF, None),
        Variant(AGAIN, None, why="the same as off: the difference is noise"),
        Variant(ON, control._replace(seed=None, on_drift="ignore"), why="all switches"),
    )


def switch_variants(
    control: Control, rows: dict[str, dict[str, Any]], variables: Mapping[str, str], *, has_cuda: bool
) -> tuple[tuple[Variant, ...], tuple[Unmeasured, ...]]:
    """Return a variant for each switch that changes something here, and why the others have none.

    Args:
        control: the one that was asked for.
        rows: the result for each switch in a run with everything on.
        variables: the variables that control set for that run.
        has_cuda: whether the script can use CUDA.
    """
    compiled = rows.get(COMPILER_FLAG, {}).get("state") != "waiting"
    variants, left_out = [], []
    for name, row in rows.items():
        changed = row["before"] != row["now"] or name in variables or name == FILL
        unmeasured = _not_set(name, row, changed=changed) or _without_effect(name, has_cuda, compiled)
        if unmeasured is None:
            variants.append(_alone(control, name, row["wanted"]))
        else:
            left_out.append(unmeasured)
    return tuple(variants), tuple(left_out)


def _not_set(name: str, row: dict[str, Any], *, changed: bool) -> Unmeasured | None:
    """Return the switch if it was not set, or has its value anyway; None if it was."""
    if row["state"] == "held":
        return Unmeasured(name, WhyUnmeasured.WATCHED)
    if name.startswith(("inductor", "TORCHINDUCTOR")) and row["state"] == "waiting":
        return Unmeasured(name, WhyUnmeasured.NOT_COMPILED)
    if row["state"] not in ("set", "kept"):
        return Unmeasured(name, WhyUnmeasured.NOT_SET, str(row.get("why") or row["state"]))
    return None if changed else Unmeasured(name, WhyUnmeasured.UNCHANGED)


def _without_effect(name: str, has_cuda: bool, compiled: bool) -> Unmeasured | None:  # noqa: FBT001 - facts
    """Return the switch if it was set but changes nothing in this script; None if it may."""
    readers = readers_of(name)
    if readers and not any(_is_installed(package) for package in readers):
        return Unmeasured(name, WhyUnmeasured.NO_READER, readers[0])
    if name.startswith("TORCHINDUCTOR") and not compiled:
        return Unmeasured(name, WhyUnmeasured.NOT_COMPILED)
    on_cuda = switch_named(name).when in (When.CUDA, When.GROUP) or name.startswith("cudnn")
    return Unmeasured(name, WhyUnmeasured.NO_CUDA) if on_cuda and not has_cuda else None


def _is_installed(package: str) -> bool:
    try:
        metadata.distribution(package)
    except metadata.PackageNotFoundError:
        return False
    return True


def _alone(control: Control, name: str, value: str) -> Variant:
    """Return a variant with one switch; one that needs the deterministic flag is measured on top of it."""
    chosen: tuple[tuple[str, str], ...] = ((name, value),)
    over, why = OFF, ""
    if name == FLAG:
        chosen, why = (*chosen, (FILL, "off")), f"without {FILL}"
    elif name == FILL:
        chosen, over, why = (*chosen, (FLAG, "on")), FLAG, f"on top of {FLAG}"
    only = control._replace(seed=None, switches=chosen, all_switches=False, on_drift="ignore", workers=False)
    return Variant(name, only, over, why)


_FEWEST_STEPS = 3


@dataclass(frozen=True, slots=True)
class Timing:
    """One run of one variant.

    Args:
        durations: of its timed steps, in seconds.
        control: the report of its control.
        failure: why it has no durations; empty if it has some.
        too_few: whether the reason is that the script took too few steps.
    """

    durations: tuple[float, ...]
    control: dict[str, Any]
    failure: str = ""
    too_few: bool = False


def measure_cost(request: CostRequest, announce: Callable[[str], None] | None = None) -> CostReport:
    """Run a script again and again, with all switches off, on, and each one alone, and time its steps.

    The variants take turns, in another order in each round, so that a machine that gets slower slows all of
    them. Each is compared with its base variant in the same round.

    Args:
        request: the measurement.
        announce: called with the name of the next run.

    Raises:
        SamebitsError: the script fails (`cost-script-failed`) or takes too few steps (`cost-no-steps`).
        KeyboardInterrupt: the user ended it before a round was over.
    """
    tell = announce or (lambda _: None)
    runner = _Runner(request)
    tell("looking for switches that change something")
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


def measure_in_job(surroundings: Surroundings, request: CostRequest) -> CostReport:
    """Measure in a job, all variants on its one machine.

    Args:
        surroundings: of the command that submitted it.
        request: the measurement; its files are written in a folder of the job's own.

    Raises:
        SamebitsError: as `measure_cost`.
    """
    with tempfile.TemporaryDirectory(prefix="samebits-cost-") as folder, surroundings.entered():
        report = measure_cost(replace(request, folder=Path(folder)))
    return replace(report, machine=platform.node())


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
            level=Level.CLOCK,
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
        ending = f"the script ended {exit_text(status)}{hint}"
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
        steps = len(seen["times"])
        taken = f"the script took {steps} step{'' if steps == 1 else 's'}"
        return Timing(durations, seen["control"], taken, too_few=True)


def _check(first: Timing, request: CostRequest) -> None:
    if not first.failure:
        return
    message = f"the cost cannot be measured: {first.failure}"
    if not first.too_few:  # it failed, so the number of steps that it would take is not known
        raise SamebitsError(message, slug="cost-script-failed")
    message += (
        f"; expected at least {request.warmup + _FEWEST_STEPS + 1} steps (of an optimizer, or backward "
        "passes if it has none)"
    )
    raise SamebitsError(message, slug="cost-no-steps")


def _cost(variant: Variant, timings: dict[str, list[Timing]]) -> Cost:
    """Return the cost of a variant relative to the one that it is compared with."""
    own, other = timings[variant.name], timings[variant.over]
    failure = next((timing.failure for timing in (*own, *other) if timing.failure), "")
    if failure:
        return Cost(variant, failure=failure)
    seconds = tuple(statistics.median(timing.durations) for timing in own)
    base = tuple(statistics.median(timing.durations) for timing in other)
    return Cost(variant, seconds, tuple(a / b for a, b in zip(seconds, base, strict=True)))
