"""The result depends on Python's generators, which nothing seeds."""

from __future__ import annotations

from samebits.causes.specification import Advice, Cause
from samebits.causes.unseeded import in_worker, made_by_library, unseeded
from samebits.rng.sources import PYTHON

_INTERVENTION = PYTHON.intervention

SPECIFICATION = unseeded(
    Cause.UNSEEDED_PYTHON,
    PYTHON,
    *made_by_library(_INTERVENTION),
    in_worker(_INTERVENTION),
    Advice(
        "make it with a number: `random.Random(0)` has the same state in each run",
        (_INTERVENTION,),
        "random.Random",
    ),
    Advice("seed with a number: `random.seed(0)`", (_INTERVENTION,), "random.seed"),
    Advice(
        "call `random.seed(0)` after the imports, or draw from a `random.Random(0)` of your own",
        (_INTERVENTION,),
    ),
)
