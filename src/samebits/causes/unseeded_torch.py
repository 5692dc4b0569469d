"""The result depends on torch's generators, which nothing seeds."""

from __future__ import annotations

from samebits.causes.specification import Advice, Cause
from samebits.causes.unseeded import unseeded
from samebits.rng.sources import TORCH

_INTERVENTION = TORCH.intervention

SPECIFICATION = unseeded(
    Cause.UNSEEDED_TORCH,
    TORCH,
    Advice(
        "seed with a number: `manual_seed(0)` in place of `seed()`",
        (_INTERVENTION,),
        "torch.seed|torch.Generator.seed",
    ),
    Advice(
        "give the loader `generator=torch.Generator().manual_seed(0)`, or call "
        "`torch.manual_seed(0)` before it",
        (_INTERVENTION,),
        "DataLoader",
    ),
    Advice(
        "call `torch.manual_seed(0)` after the imports, before the first tensor is made",
        (_INTERVENTION,),
    ),
)
