"""What each switch costs on the user's own script."""

from samebits.cost.measure import measure_cost
from samebits.cost.results import Cost, CostReport, CostRequest

__all__ = ["Cost", "CostReport", "CostRequest", "measure_cost"]
