"""The result depends on memory that was read before anything was written to it."""

from __future__ import annotations

from samebits.causes.specification import (
    Advice,
    Cause,
    InterventionEvidence,
    OriginKind,
    PatchRule,
    Specification,
    nearby,
)

_INTERVENTION = "fill"

SPECIFICATION = Specification(
    cause=Cause.UNINITIALIZED,
    sentence="took memory that was read before it was written ({taken})",
    draws=("numpy.empty",),
    is_drawn=True,
    interventions=((_INTERVENTION,),),
    evidence=(InterventionEvidence(_INTERVENTION),),
    advice=(
        Advice("write what `resize_` adds: it leaves that memory as it was", (_INTERVENTION,), ".*resize_"),
        Advice(
            "use `numpy.empty`'s sibling that fills: `zeros`, `full`, or write every element before it is "
            "read",
            (_INTERVENTION,),
            "numpy.empty",
        ),
        Advice("use `zeros` in place of `empty`, or write every element before it is read", (_INTERVENTION,)),
    ),
    acts_at_its_line=True,
    seen_as=OriginKind.UNINITIALIZED,
    visible=True,
    patches=(*nearby(PatchRule.ZEROS_FOR_EMPTY),),
)
