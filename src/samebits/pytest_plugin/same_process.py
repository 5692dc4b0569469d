"""Calls a function several times in this process and compares the records."""

from __future__ import annotations

import contextlib
import os
import secrets
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, TypeVar

from samebits.pytest_plugin.fresh_runs import compared, rendered
from samebits.pytest_plugin.recorded_result import record_result
from samebits.recording.session import Ending, RecordingSession
from samebits.recording.settings import RecordingSettings
from samebits.records.kinds import Level
from samebits.rng.states import isolated, seed_sources

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

T = TypeVar("T")


def compare_calls(
    function: Callable[[], T], *, runs: int, seed: int | None, state_only: bool
) -> tuple[T, str]:
    """Call a function several times, and compare what it does.

    Unless there is a seed, all generators get other states before each call, so a function that relies on
    them gives other bits; in the end they are put back. If two calls differ, it is called twice more, with
    every operation recorded.

    Args:
        function: takes no arguments.
        runs: how many calls are compared, at least 2.
        seed: put each call under control with this seed; None calls the function as it is.
        state_only: values that are only read out may differ.

    Returns:
        What the first call returned, and the report of a difference; it is empty without one.
    """
    with isolated(), TemporaryDirectory() as name:
        folder, report = Path(name), ""
        first = _call(function, folder / "run-1.sbr", seed)
        for number in range(2, runs + 1):
            _call(function, folder / f"run-{number}.sbr", seed)
            report = _report(folder / "run-1.sbr", folder / f"run-{number}.sbr", state_only=state_only)
            if report:
                break
        if report:
            for number in (1, 2):
                _call(function, folder / f"op-{number}.sbr", seed, level=Level.OP)
            ops = _report(folder / "op-1.sbr", folder / "op-2.sbr", state_only=state_only)
            report = ops or report
    return first, report


def _call(function: Callable[[], T], path: Path, seed: int | None, level: Level = Level.STEP) -> T:
    seed_sources(secrets.randbits(63))
    with _control(seed), _recorded(path, level):
        result = function()
        record_result(result)
    return result


@contextlib.contextmanager
def _recorded(path: Path, level: Level) -> Iterator[None]:
    """Record the block as if a process began with it: earlier seeds of generators are none of its own."""
    session = RecordingSession(RecordingSettings(str(path), level=level), tuple(sys.argv))
    session.start()
    session.watch_draws()
    try:
        yield
    except BaseException as error:
        session.finish(Ending("failed", failure=f"{type(error).__name__}: {error}"))
        raise
    session.finish()


def _control(seed: int | None) -> AbstractContextManager[object]:
    if seed is None:
        return contextlib.nullcontext()
    from samebits.determinism.context import deterministic

    return deterministic(seed=seed)


def _report(first: Path, second: Path, *, state_only: bool) -> str:
    report = rendered(compared(str(first), str(second), "the function"), state_only=state_only)
    # The records are removed: they are no advice.
    lines = [line for line in report.splitlines() if os.fspath(first.parent) not in line]
    return "\n".join(lines).rstrip()
