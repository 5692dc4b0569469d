"""Work on a CUDA stream, or a copy that does not wait, is not over when its result is used."""

from __future__ import annotations

from samebits.causes.specification import (
    Advice,
    Cause,
    InterventionEvidence,
    PatchRule,
    Specification,
    anywhere,
)

_INTERVENTION = "serial-streams"

SPECIFICATION = Specification(
    cause=Cause.STREAM_ORDER,
    sentence="used values that another CUDA stream, or a copy that did not wait, was still working on",
    interventions=((_INTERVENTION,),),
    evidence=(InterventionEvidence(_INTERVENTION, acts=False),),
    advice=(
        Advice(
            "let each stream wait for the one whose values it takes, `side.wait_stream(torch.cuda."
            "current_stream())` before and `torch.cuda.current_stream().wait_stream(side)` after, and read "
            "what was copied to the CPU with `non_blocking=True` after `torch.cuda.synchronize()` only",
            (_INTERVENTION,),
        ),
    ),
    patches=anywhere(PatchRule.STREAMS_WAIT, PatchRule.BLOCKING_COPIES),
    no_patch="streams share something: only you can say which of them has to wait",
)
