"""Python's generators draw, and nothing seeds them."""

from __future__ import annotations

from samebits.causes.cause import Cause
from samebits.causes.specification import Advice, PinEvidence, Specification
from samebits.causes.unseeded import SENTENCE, chosen_seed, in_worker, made_by_library

_PIN = "seed-python"

SPECIFICATION = Specification(
    cause=Cause.UNSEEDED_PYTHON,
    sentence=SENTENCE,
    draws=("random.",),
    is_drawn=True,
    pins=((_PIN,),),
    evidence=(PinEvidence(_PIN),),
    advice=(
        chosen_seed(_PIN),
        *made_by_library(_PIN),
        in_worker(_PIN),
        Advice(
            "make it with a number: `random.Random(0)` has the same state in each run",
            (_PIN,),
            "random.Random",
        ),
        Advice("seed with a number: `random.seed(0)`", (_PIN,), "random.seed"),
        Advice(
            "call `random.seed(0)` after the imports, or draw from a `random.Random(0)` of your own",
            (_PIN,),
        ),
    ),
    library="python",
    seeded_by=_PIN,
    never_alike=True,
)
