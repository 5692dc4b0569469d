"""The result depends on Python's hash of text, salted in each process: by a set's order, or `hash`."""

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

_INTERVENTION = "hash-seed"

SPECIFICATION = Specification(
    cause=Cause.HASH_ORDER,
    sentence="depends on Python's hash seed: on hash() of text, or on the order of a set",
    interventions=((_INTERVENTION,),),
    evidence=(InterventionEvidence(_INTERVENTION),),
    advice=(
        Advice(
            "use a checksum, `zlib.crc32(repr(x).encode())`: `hash` of a string is salted in each process",
            (_INTERVENTION,),
            "builtins.hash",
        ),
        Advice("sort the set before its order is used: `sorted(...)`, or keep a list", (_INTERVENTION,)),
    ),
    visible=True,
    undrawn_calls=("builtins.hash",),
    patches=(
        *anywhere(PatchRule.SORT_SETS, PatchRule.CHECKSUM_FOR_HASH),
        *nearby(*SEEDING),
    ),
)
