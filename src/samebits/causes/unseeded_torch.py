"""torch's generators draw, and nothing seeds them."""

from __future__ import annotations

from samebits.causes.cause import Cause
from samebits.causes.specification import Advice, PinEvidence, Specification
from samebits.causes.unseeded import SENTENCE, chosen_seed

_PIN = "seed-torch"

SPECIFICATION = Specification(
    cause=Cause.UNSEEDED_TORCH,
    sentence=SENTENCE,
    draws=("torch.",),
    is_drawn=True,
    pins=((_PIN,),),
    evidence=(PinEvidence(_PIN),),
    advice=(
        chosen_seed(_PIN),
        Advice(
            "seed with a number: `manual_seed(0)` in place of `seed()`",
            (_PIN,),
            "torch.seed|torch.Generator.seed",
        ),
        Advice(
            "give the loader `generator=torch.Generator().manual_seed(0)`, or call "
            "`torch.manual_seed(0)` before it",
            (_PIN,),
            "DataLoader",
        ),
        Advice(
            "call `torch.manual_seed(0)` after the imports, before the first tensor is made",
            (_PIN,),
        ),
    ),
    library="torch",
    seeded_by=_PIN,
    never_alike=True,
)
