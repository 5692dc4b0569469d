"""The results of executing ops again, as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from samebits.report.style import number

if TYPE_CHECKING:
    from samebits.recording.replay_results import ReplaySummary

_MOST_OPS = 6
# Repeating these shows nothing, so they are only counted.
_COUNTED = ("view", "uninitialised memory", "no tensor result", "range of the profiler")


def summary_text(summary: ReplaySummary) -> str:
    """Return `412 calls of 38 operations executed again in 3 steps, all gave the same bits`."""
    times = "" if summary.times == 1 else f" {number(summary.times)} times each"
    calls, ops = _count(summary.calls, "call"), _count(summary.ops, "operation")
    what = f"{calls} of {ops} executed again{times}"
    unrepeated = len(summary.unrepeated)
    result = f"{_count(unrepeated, 'operation')} did not repeat" if unrepeated else "all gave the same bits"
    return f"{what} in {_count(summary.steps, 'step')}, {result}"


def skipped_lines(summary: ReplaySummary) -> list[str]:
    """List what was not executed again: one line for what is only counted, one for each other reason."""
    reasons: dict[str, dict[str, int]] = {}
    for item in summary.skipped:
        reasons.setdefault(item.reason, {})[item.op] = item.calls
    counted = [f"{number(sum(reasons[r].values()))} {r}" for r in _COUNTED if r in reasons]
    lines = [f"not executed again: {', '.join(counted)}"] if counted else []
    for reason in sorted(reasons.keys() - set(_COUNTED)):
        names = [f"{op} {number(calls)}" for op, calls in reasons[reason].items()]
        more = f" and {len(names) - _MOST_OPS} more" if len(names) > _MOST_OPS else ""
        lines.append(f"not executed again, {reason}: {', '.join(names[:_MOST_OPS])}{more}")
    return lines


def _count(value: int, noun: str) -> str:
    return f"{number(value)} {noun}" + ("" if value == 1 else "s")
