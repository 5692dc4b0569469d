"""Portable mode: the same bits on any threads, CPU and release of torch (docs/reference/portable.md).

The package can be called: `with samebits.portable():` is `with samebits.portable.portable():`.
Importing it does not import torch; the first use of its names does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from samebits._runtime.lazy import late_dir, late_names, make_callable

if TYPE_CHECKING:
    from samebits.portable.activation import portable
    from samebits.portable.coverage import Coverage, covered_ops, is_covered

__all__ = ["NUMERICS_VERSION", "Coverage", "covered_ops", "is_covered", "portable"]

NUMERICS_VERSION = 1
"""The version of docs/reference/portable-numerics.md, in every portable record: another has other bits."""

_HOMES = {
    "Coverage": "coverage",
    "covered_ops": "coverage",
    "is_covered": "coverage",
    "portable": "activation",
}

__getattr__ = late_names(__name__, _HOMES)
__dir__ = late_dir(dict.fromkeys(__all__, ""))
make_callable(__name__, "portable")  # `samebits.portable` is both this package and the function of that name
