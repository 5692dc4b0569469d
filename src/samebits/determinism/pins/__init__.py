"""Interventions: each fixes one thing in a run, the same in every run that has it (docs/pins.md)."""

from __future__ import annotations

from samebits.determinism.pins.intervention import Intervention
from samebits.determinism.pins.plan import (
    InterventionPlan,
    combine,
    intervention_named,
    why_not,
    without_implied,
)
from samebits.determinism.pins.table import INTERVENTIONS

__all__ = [
    "INTERVENTIONS",
    "Intervention",
    "InterventionPlan",
    "combine",
    "intervention_named",
    "why_not",
    "without_implied",
]
