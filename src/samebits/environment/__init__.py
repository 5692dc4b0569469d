"""Facts of the machine, the packages and the settings a run took place in. Nothing is changed by looking."""

from __future__ import annotations

from samebits.environment.differences import bit_relevant_differences
from samebits.environment.facts import Environment, collect, numeric_variables

__all__ = ["Environment", "bit_relevant_differences", "collect", "numeric_variables"]
