"""Seeding a controlled run.

The one place where a recorded child is seeded: `determinism.activation` takes over from here.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from samebits.determinism.seeds import fit

if TYPE_CHECKING:
    from samebits.determinism.control import Control
    from samebits.hooks.imports import PostImport


def seed_sources(control: Control | None, imports: PostImport) -> None:
    """Seed the generators of Python, and of NumPy and torch right after their import.

    Args:
        control: what is asked for; without a seed nothing is done.
        imports: calls back when a module has been imported.
    """
    if control is None or control.seed is None:
        return
    seed = control.seed
    random.seed(seed)
    imports.on_import("numpy", lambda numpy: numpy.random.seed(fit(seed, "numpy")))
    imports.on_import("torch", lambda torch: torch.manual_seed(fit(seed, "torch")))
