"""A curve in one line of text."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

BLOCKS = "▁▂▃▄▅▆▇█"
PLAIN = "_.-~=+*#"
_NOT_FINITE = "?"


def sparkline(values: Sequence[float], width: int, ramp: str = BLOCKS, *, log: bool = False) -> str:
    """Return the curve of some values, averaged down to `width` characters if it is longer.

    Args:
        values: NaN and infinities show as `?`.
        width: most characters.
        ramp: characters from low to high.
        log: logarithmic heights; all finite values must be positive.
    """
    columns = _averaged([math.log(v) if log and math.isfinite(v) else v for v in values], width)
    finite = [value for value in columns if math.isfinite(value)]
    if not finite:
        return _NOT_FINITE * len(columns)
    low, high = min(finite), max(finite)
    scale = (len(ramp) - 1) / (high - low) if high > low else 0.0
    return "".join(
        ramp[round((value - low) * scale)] if math.isfinite(value) else _NOT_FINITE for value in columns
    )


def strip(value: float, low: float, high: float, width: int, marks: str = "·●") -> str:
    """Return a line with a mark where a value lies between two others.

    Args:
        value: NaN and infinities get no mark.
        low: at the left end.
        high: at the right end.
        width: characters.
        marks: the line and the mark.
    """
    line = [marks[0]] * width
    if math.isfinite(value):
        position = round((value - low) / (high - low) * (width - 1)) if high > low else width // 2
        line[max(0, min(width - 1, position))] = marks[1]
    return "".join(line)


def wants_log(values: Sequence[float]) -> bool:
    """Tell whether positive values span too much for a linear scale."""
    finite = [value for value in values if math.isfinite(value)]
    return bool(finite) and min(finite) > 0 and max(finite) > 50 * min(finite)


def _averaged(values: Sequence[float], width: int) -> list[float]:
    if len(values) <= width:
        return list(values)
    edges = [round(index * len(values) / width) for index in range(width + 1)]
    return [_mean(values[a:b]) for a, b in itertools.pairwise(edges)]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
