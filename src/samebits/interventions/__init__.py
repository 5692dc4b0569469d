"""Interventions: each fixes one thing in a run, the same in every run (docs/reference/interventions.md)."""

from __future__ import annotations

from samebits.interventions.intervention import Intervention
from samebits.interventions.plan import (
    InterventionPlan,
    combine,
    intervention_named,
    why_not,
    without_implied,
)
from samebits.interventions.table import INTERVENTIONS

__all__ = [
    "INTERVENTIONS",
    "Intervention",
    "InterventionPlan",
    "combine",
    "intervention_named",
    "why_not",
    "without_implied",
]
