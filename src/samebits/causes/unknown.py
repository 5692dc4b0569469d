"""There is no evidence of any other cause."""

from __future__ import annotations

from samebits.causes.specification import (
    SEEDING,
    Cause,
    InterventionEvidence,
    PatchRule,
    Specification,
    anywhere,
    nearby,
)

SPECIFICATION = Specification(
    cause=Cause.UNKNOWN,
    sentence="",
    evidence=(InterventionEvidence("seed-libraries", acts=False),),
    patches=(
        *anywhere(
            PatchRule.SORT_SETS,
            PatchRule.CHECKSUM_FOR_HASH,
            PatchRule.ORDER_OF_SUBMISSION,
            PatchRule.SORT_LISTINGS,
            *SEEDING,
            PatchRule.FIRST_CANDIDATE,
            PatchRule.FIXED_THREAD_COUNT,
        ),
        *nearby(
            PatchRule.NO_ADDRESSES,
            PatchRule.DEFAULT_OF_SEED_OPTION,
            PatchRule.SEED_LIBRARY_OF_DRAW,
            PatchRule.REPLACE_ANY_SEED,
            PatchRule.SEEDED_ENTROPY,
            PatchRule.ZEROS_FOR_EMPTY,
            PatchRule.LOADER_IN_ORDER,
        ),
    ),
    no_patch="the cause is not known, and nothing on the lines that lead there is suspicious by itself",
)
