"""The request for a spread, and the settings of each run."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from samebits.errors import SamebitsError
from samebits.recording.naming import DEFAULT_FOLDER
from samebits.recording.runner import Target
from samebits.recording.settings import RecordingSettings
from samebits.rng.seeds import check_seed
from samebits.switches.switch import Control
from samebits.switches.table import environment_for as control_variables

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

PLACEHOLDER = "{seed}"
SPREAD_FOLDER = DEFAULT_FOLDER / "spread"
_THREADS_VARIABLE = "OMP_NUM_THREADS"


@dataclass(frozen=True, slots=True)
class SpreadRequest:
    """The runs that are asked for.

    Args:
        target: the script or module; `{seed}` in its arguments stands for the seed.
        seeds: one run each.
        jobs: how many run at a time.
        threads: value of `OMP_NUM_THREADS` in each.
        max_steps: stop each run after that many steps.
        seed_argument: the script gets the seed as this argument too; empty for none.
        fresh: run seeds again that have finished before.
        control: of each run, without its seed.
    """

    target: Target
    seeds: tuple[int, ...]
    jobs: int
    threads: int
    max_steps: int | None = None
    seed_argument: str = ""
    fresh: bool = False
    control: Control = Control()  # noqa: RUF009 - frozen


def settings_for(seed: int, request: SpreadRequest, files: Path) -> RecordingSettings:
    """Return the settings by which the run of one seed is recorded and controlled.

    Args:
        seed: of the run.
        request: the spread.
        files: path of its files, without a suffix.
    """
    return RecordingSettings(
        record=f"{files}.sbr",
        overwrite=True,
        max_steps=request.max_steps,
        control=request.control._replace(seed=seed),
        values=f"{files}.values.jsonl",
    )


def target_for(seed: int, request: SpreadRequest) -> Target:
    """Return the script and arguments for one seed."""
    target, name = request.target, request.seed_argument
    arguments = [word.replace(PLACEHOLDER, str(seed)) for word in target.arguments]
    if name.endswith("="):
        arguments.append(f"{name}{seed}")
    elif name:
        arguments += [name, str(seed)]
    return Target(target.script, target.module, tuple(arguments))


def environment_for(request: SpreadRequest) -> dict[str, str]:
    """Return the variables of each run, beside the user's own.

    The number of threads changes bits, so it is the same for all seeds.
    """
    threads = {_THREADS_VARIABLE: str(request.threads)}
    return {**threads, **control_variables(request.control, {**os.environ, **threads}).variables}


def share_cores(jobs: int | None, threads: int | None, environ: Mapping[str, str]) -> tuple[int, int]:
    """Return how many runs to start at a time, and threads for each, so that they do not compete for cores.

    By default a run has one thread, for any number of seeds, so that a spread that is continued later has the
    same number. The user's `OMP_NUM_THREADS` counts like `threads`.

    Args:
        jobs: runs at a time, if asked for.
        threads: of each run, if asked for.
        environ: the environment.
    """
    cores = available_cores()
    given = environ.get(_THREADS_VARIABLE, "")
    if threads is None and given.isascii() and given.isdigit() and int(given) > 0:
        threads = int(given)
    if threads is None:
        threads = max(1, cores // jobs) if jobs is not None else 1
    return jobs if jobs is not None else max(1, cores // threads), threads


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)  # not on macOS
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1


def merged_arguments(base: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...]:
    """Return the arguments of a second configuration: those of the first, some replaced or added.

    Args:
        base: arguments of the first: `("--data", "x", "--lr", "0.1")`.
        other: the differing ones: `("--lr", "0.01")`, or `("optimizer.lr=0.01",)` for `name=value` arguments.
    """
    result = list(_groups(base))
    for group in _groups(other):
        name = _name(group)
        matches = [index for index, old in enumerate(result) if name and _name(old) == name]
        if matches:
            result[matches[0]] = group
        else:
            result.append(group)
    return tuple(word for group in result for word in group)


def _groups(words: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Return each option with the words that follow it, and other words alone."""
    groups: list[tuple[str, ...]] = []
    for word in words:
        takes_values = bool(groups) and groups[-1][0].startswith("-") and "=" not in groups[-1][0]
        if _is_option(word) or not takes_values or ("=" in word and not word.startswith("-")):
            groups.append((word,))
        else:
            groups[-1] += (word,)
    return groups


def _is_option(word: str) -> bool:
    return word.startswith("-") and len(word) > 1 and not word[1].isdigit() and word[1] != "."


def _name(group: tuple[str, ...]) -> str:
    word = group[0]
    return word.partition("=")[0] if _is_option(word) or "=" in word else ""


_MOST = 10_000


def parse_seeds(text: str) -> tuple[int, ...]:
    """Return the seeds in a text, in order.

    Args:
        text: whole numbers and ranges, both ends included, separated by commas: `0..9`, `0,3,7`, `0..4,100`.

    Raises:
        SamebitsError: anything else, a seed twice, or more than 10 000 seeds; `seeds` or `seed`.
    """
    seeds: list[int] = []
    for part in text.split(","):
        first, dots, last = part.strip().partition("..")
        low, high = _whole(first, text), _whole(last if dots else first, text)
        if high < low:
            raise _refused(text, f"{part.strip()} runs backwards")
        if high - low >= _MOST or len(seeds) + high - low >= _MOST:
            raise _refused(text, f"more than {_MOST} seeds")
        seeds += range(low, high + 1)
    twice = sorted({seed for seed in seeds if seeds.count(seed) > 1}) if len(set(seeds)) < len(seeds) else []
    if twice:
        raise _refused(text, f"seed {twice[0]} appears twice")
    return tuple(seeds)


def seeds_text(seeds: tuple[int, ...]) -> str:
    """Return the shortest text that `parse_seeds` reads as those seeds."""
    parts: list[list[int]] = []
    for seed in seeds:
        if parts and seed == parts[-1][-1] + 1:
            parts[-1].append(seed)
        else:
            parts.append([seed])
    return ",".join(f"{part[0]}..{part[-1]}" if len(part) > 1 else str(part[0]) for part in parts)


def _whole(text: str, given: str) -> int:
    text = text.strip()
    if not (text.isascii() and text.isdigit()):
        raise _refused(given, f"{text!r} is not a whole number")
    return check_seed(int(text))


def _refused(text: str, why: str) -> SamebitsError:
    message = f"the seeds are {text!r}: {why}; expected seeds such as 0..9 or 0,3,7"
    return SamebitsError(message, slug="seeds")
