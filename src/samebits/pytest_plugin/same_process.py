"""Calls a function several times in this process and compares the records."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from samebits.recording.recorded_result import record_result
from samebits.report.calls import rendered
from samebits.switches.switch import Control
from samebits.verification.repeated_calls import CallsRequest, repeated_calls

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


def compare_calls(
    function: Callable[[], T], *, runs: int, seed: int | None, state_only: bool
) -> tuple[T, str]:
    """Call a function several times, and compare what it does.

    Unless there is a seed, all generators get other states before each further call, so a function that
    relies on them gives other bits; in the end they are put back. If two calls differ, it is called twice
    more, with every operation recorded.

    Args:
        function: takes no arguments.
        runs: how many calls are compared, at least 2.
        seed: put each call under control with this seed; None calls the function as it is.
        state_only: values that are only read out may differ.

    Returns:
        What the first call returned, and the report of a difference; it is empty without one.
    """
    control = None if seed is None else Control(seed=seed)
    results: list[T] = []
    with repeated_calls(CallsRequest("the function", runs, control, state_only)) as calls:
        for call in calls:
            with call:
                results.append(function())
                record_result(results[-1])
            del results[1:]
        result = calls.result
        report = "" if result is None else rendered(result, state_only=state_only, removed=calls.folder)
    return results[0], report
