"""Pins: each fixes one thing in a run, the same in every run that has it (docs/pins.md)."""

from __future__ import annotations

from samebits.determinism.pins.plan import PinPlan, combine, pin_named, why_not, without_implied
from samebits.determinism.pins.table import PINS, Pin

__all__ = ["PINS", "Pin", "PinPlan", "combine", "pin_named", "why_not", "without_implied"]
