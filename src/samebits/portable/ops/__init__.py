"""What torch's ops do in portable mode: one module for each family, each with a `table()`."""

from __future__ import annotations

import functools
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

_FAMILIES = (
    "accumulation",
    "activations",
    "arithmetic",
    "attention",
    "bessel",
    "choices",
    "class_losses",
    "contractions",
    "conversions",
    "convolutions",
    "counts",
    "ctc",
    "distances",
    "distributions",
    "elementary",
    "embedding",
    "gamma",
    "grids",
    "grouped",
    "implicit_gradients",
    "index_put",
    "interpolation",
    "least_squares",
    "linalg",
    "loss_scaling",
    "losses",
    "matrix_exp",
    "normalization",
    "optimizers",
    "ordering",
    "padding",
    "polygamma",
    "pooling",
    "qr",
    "random",
    "ranges",
    "remainders",
    "roots",
    "scans",
    "softmax",
    "spectral",
    "sums",
    "windows",
)


@functools.cache
def families() -> tuple[ModuleType, ...]:
    """The modules of handlers, each with a `table()`; imported when they are first asked for."""
    return tuple(import_module(f"{__name__}.{name}") for name in _FAMILIES)
