"""NumPy's generators draw, and nothing seeds them."""

from __future__ import annotations

from samebits.causes.cause import Cause
from samebits.causes.specification import Advice, PinEvidence, Specification
from samebits.causes.unseeded import SENTENCE, chosen_seed, in_worker, made_by_library

_PIN = "seed-numpy"

SPECIFICATION = Specification(
    cause=Cause.UNSEEDED_NUMPY,
    sentence=SENTENCE,
    draws=("numpy.random.",),
    is_drawn=True,
    pins=((_PIN,),),
    evidence=(PinEvidence(_PIN),),
    advice=(
        chosen_seed(_PIN),
        *made_by_library(_PIN),
        in_worker(_PIN),
        Advice(
            "give the generator a seed: `default_rng(0)`, `RandomState(0)`, `SeedSequence(0)`",
            (_PIN,),
            "numpy.random.SeedSequence",
        ),
        Advice(
            "call `numpy.random.seed(0)` after the imports, or draw from a `default_rng(0)` of your own",
            (_PIN,),
        ),
    ),
    library="numpy",
    seeded_by=_PIN,
    never_alike=True,
)
