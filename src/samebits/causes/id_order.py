"""The result depends on the addresses of objects, which differ in each run."""

from __future__ import annotations

from samebits.causes.specification import (
    SEEDING,
    Advice,
    Cause,
    InterventionEvidence,
    PatchRule,
    Specification,
    anywhere,
    nearby,
)

_INTERVENTION = "layout"

SPECIFICATION = Specification(
    cause=Cause.ID_ORDER,
    sentence="depends on the addresses of objects: on id(), a default repr or hash, or the order of a set",
    draws=(
        "torch.Tensor.data_ptr",
        "torch.UntypedStorage.data_ptr",
        "torch.TypedStorage.data_ptr",
        "ctypes.addressof",
    ),
    interventions=((_INTERVENTION,),),
    evidence=(InterventionEvidence(_INTERVENTION),),
    advice=(
        Advice(
            "give the objects a `__repr__` or a name of their own: the default one holds the address",
            (_INTERVENTION,),
            "builtins.repr",
        ),
        Advice("give the objects numbers of their own: `id` is an address", (_INTERVENTION,), "builtins.id"),
        Advice(
            "replace the address with a number of your own: memory lies elsewhere in each run",
            (_INTERVENTION,),
            ".*data_ptr|ctypes.addressof",
        ),
        Advice(
            "keep the objects in a list or `dict.fromkeys(...)`: a set of them is in the order of "
            "their addresses",
            (_INTERVENTION,),
        ),
    ),
    visible=True,
    undrawn_calls=("builtins.id", "builtins.repr"),
    patches=(
        *anywhere(PatchRule.SORT_SETS),
        *nearby(PatchRule.NO_ADDRESSES, *SEEDING),
    ),
)
