"""Calls a function several times in this process and compares the records."""

from __future__ import annotations

import contextlib
import os
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, TypeVar

from samebits.pytest_plugin.fresh_runs import rendered
from samebits.pytest_plugin.recorded_result import record_result
from samebits.recording.session import record
from samebits.verification import verify_records

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

T = TypeVar("T")


def compare_calls(
    function: Callable[[], T], *, runs: int, seed: int | None, state_only: bool
) -> tuple[T, str]:
    """Call a function several times, and compare what it does.

    Generators go on from call to call, unless there is a seed. If two calls differ, it is called twice more,
    with every operation recorded.

    Args:
        function: takes no arguments.
        runs: how many calls are compared, at least 2.
        seed: put each call under control with this seed; None calls the function as it is.
        state_only: values that are only read out may differ.

    Returns:
        What the first call returned, and the report of a difference; it is empty without one.
    """
    with TemporaryDirectory() as name:
        folder, report = Path(name), ""
        first = _call(function, folder / "run-1.sbr", seed)
        for number in range(2, runs + 1):
            _call(function, folder / f"run-{number}.sbr", seed)
            report = _report(folder / "run-1.sbr", folder / f"run-{number}.sbr", state_only=state_only)
            if report:
                break
        if report:
            for number in (1, 2):
                _call(function, folder / f"op-{number}.sbr", seed, level="op")
            ops = _report(folder / "op-1.sbr", folder / "op-2.sbr", state_only=state_only)
            report = ops or report
    return first, report


def _call(function: Callable[[], T], path: Path, seed: int | None, level: str = "step") -> T:
    with _control(seed), record(path, level=level):
        result = function()
        record_result(result)
    return result


def _control(seed: int | None) -> AbstractContextManager[object]:
    if seed is None:
        return contextlib.nullcontext()
    from samebits.determinism.context import deterministic

    return deterministic(seed=seed)


def _report(first: Path, second: Path, *, state_only: bool) -> str:
    result = replace(verify_records(str(first), str(second)), localised=True)
    report = rendered(result, state_only=state_only)
    # The records are removed: they are no advice.
    lines = [line for line in report.splitlines() if os.fspath(first.parent) not in line]
    return "\n".join(lines).rstrip()
