"""Facts of the machine, the packages and the settings of a run. Reading them changes nothing."""

from __future__ import annotations

from samebits.environment._differences import FactDifference, bit_relevant_differences, threads_per_op
from samebits.environment.snapshot import (
    Environment,
    StartFacts,
    collect,
    collect_at_start,
    numeric_variables,
    with_torch,
)

__all__ = [
    "Environment",
    "FactDifference",
    "StartFacts",
    "bit_relevant_differences",
    "collect",
    "collect_at_start",
    "numeric_variables",
    "threads_per_op",
    "with_torch",
]
