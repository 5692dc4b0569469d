"""What the programs of a pair share: the weights that both load, and names of taps.

With `--own-names` a program calls its tensors by names of its own.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import torch

import samebits

if TYPE_CHECKING:
    from collections.abc import Callable


def weights(**shapes: tuple[int, ...]) -> dict[str, torch.Tensor]:
    """The same tensors for both programs: what a file of weights would hold."""
    generator = torch.Generator().manual_seed(20)
    return {name: torch.randn(shape, generator=generator) * 0.3 for name, shape in shapes.items()}


def own_names(**names: str) -> Callable[[str, Any], Any]:
    """A `samebits.tap` that calls some tensors otherwise, if the program is told to use its own names."""
    if "--own-names" not in sys.argv:
        return samebits.tap
    return lambda name, value: samebits.tap(names[name], value)
