"""The result depends on NumPy's generators, which nothing seeds."""

from __future__ import annotations

from samebits.causes.specification import Advice, Cause
from samebits.causes.unseeded import in_worker, made_by_library, unseeded
from samebits.rng.sources import NUMPY

_INTERVENTION = NUMPY.intervention

SPECIFICATION = unseeded(
    Cause.UNSEEDED_NUMPY,
    NUMPY,
    *made_by_library(_INTERVENTION),
    in_worker(_INTERVENTION),
    Advice(
        "give the generator a seed: `default_rng(0)`, `RandomState(0)`, `SeedSequence(0)`",
        (_INTERVENTION,),
        "numpy.random.SeedSequence",
    ),
    Advice(
        "call `numpy.random.seed(0)` after the imports, or draw from a `default_rng(0)` of your own",
        (_INTERVENTION,),
    ),
)
