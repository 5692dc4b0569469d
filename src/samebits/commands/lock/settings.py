"""The settings of the machine of a lock that can be set on this one, to see whether they change the bits."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from samebits.commands.lock.outcome import RestoredSetting
from samebits.environment.snapshot import fact_at, table_at
from samebits.switches.startup import HASH_SEED

if TYPE_CHECKING:
    from collections.abc import Callable

    from samebits.comparison.environments import EnvironmentDifference

    Facts = dict[str, object]

# The instruction sets that torch can be held to, and what holds its libraries to the same.
_CAPABILITIES = {
    "DEFAULT": (
        ("ATEN_CPU_CAPABILITY", "default"),
        ("ONEDNN_MAX_CPU_ISA", "SSE41"),
        ("MKL_ENABLE_INSTRUCTIONS", "SSE4_2"),
    ),
    "AVX2": (
        ("ATEN_CPU_CAPABILITY", "avx2"),
        ("ONEDNN_MAX_CPU_ISA", "AVX2"),
        ("MKL_ENABLE_INSTRUCTIONS", "AVX2"),
    ),
}


def settings_of_lock(
    locked: Facts, differences: tuple[EnvironmentDifference, ...]
) -> tuple[RestoredSetting, ...]:
    """Return the settings with which this machine is most like that of a lock.

    Args:
        locked: the environment of the lock.
        differences: to the one here, the likeliest first.
    """
    facts = [fact for each in differences for fact in (each.fact, *each.follows)]
    variables = table_at(locked, "variables")
    settings: dict[str, str | None] = {}
    for fact in facts:
        if fact.path == ("variables",) and fact.entry is not None:
            settings[fact.entry] = variables.get(fact.entry)
        elif fact.path == ("python", "hash_seed") and fact.first not in (None, "random"):
            settings[HASH_SEED.name] = fact.first
        elif fact.path == ("torch", "threads") and fact.entry in ("intra-op", "OpenMP"):
            settings.setdefault("OMP_NUM_THREADS", str(fact_at(locked, "torch", "threads", "intra-op")))
        elif fact.path == ("torch", "threads") and fact.entry == "MKL":
            settings.setdefault("MKL_NUM_THREADS", str(fact_at(locked, "torch", "threads", "MKL")))
    if any(fact.path == ("torch", "capability") for fact in facts) and "ATEN_CPU_CAPABILITY" not in settings:
        for name, value in _CAPABILITIES.get(str(fact_at(locked, "torch", "capability")), ()):
            settings.setdefault(name, value)
    return tuple(
        RestoredSetting(name, value) for name, value in settings.items() if os.environ.get(name) != value
    )


def those_needed(
    settings: tuple[RestoredSetting, ...], gives_lock: Callable[[tuple[RestoredSetting, ...]], bool]
) -> tuple[RestoredSetting, ...]:
    """Return a smallest part of some settings that still brings the bits of the lock back.

    Each is left out once, and stays out where the bits are those of the lock without it.

    Args:
        settings: with all of which the bits are those of the lock.
        gives_lock: tells whether a part of them brings these back.
    """
    needed = settings
    for each in settings:
        fewer = tuple(other for other in needed if other != each)
        if fewer and gives_lock(fewer):
            needed = fewer
    return needed
