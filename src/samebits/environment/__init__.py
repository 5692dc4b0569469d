"""Facts of the machine, the packages and the settings of a run. Reading them changes nothing."""

from __future__ import annotations

from samebits.environment.snapshot import (
    HERE,
    TAKEN,
    Environment,
    StartFacts,
    collect,
    collect_at_start,
    fact_at,
    numeric_variables,
    table_at,
    with_inventory,
    with_packages,
    with_torch,
)

__all__ = [
    "HERE",
    "TAKEN",
    "Environment",
    "StartFacts",
    "collect",
    "collect_at_start",
    "fact_at",
    "numeric_variables",
    "table_at",
    "with_inventory",
    "with_packages",
    "with_torch",
]
