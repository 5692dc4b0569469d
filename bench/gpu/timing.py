"""Times on the device, by events, and of the host, by its clock."""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Callable

AHEAD = 1_000_000
"""Cycles that the device waits, so that the host has handed over the work before the first event."""


def device_ms(work: Callable[[], object], rounds: int = 15, warm_up: int = 3, repeats: int = 1) -> float:
    """Return the median time of work on the current stream, in milliseconds.

    Args:
        work: what to measure; it waits for nothing.
        rounds: measurements.
        warm_up: calls before them.
        repeats: calls in one measurement, for short work.
    """
    for _ in range(warm_up):
        work()
    pairs = []
    for _ in range(rounds):
        torch.cuda._sleep(AHEAD)
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(repeats):
            work()
        end.record()
        pairs.append((start, end))
    torch.cuda.synchronize()
    return statistics.median(start.elapsed_time(end) for start, end in pairs) / repeats


def host_ms(work: Callable[[], object], rounds: int = 15, warm_up: int = 2) -> float:
    """Return the median time until the device has finished the work, in milliseconds."""
    for _ in range(warm_up):
        work()
    times = []
    for _ in range(rounds):
        torch.cuda.synchronize()
        start = time.perf_counter()
        work()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e3
