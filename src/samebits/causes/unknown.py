"""There is no evidence of any other cause."""

from __future__ import annotations

from samebits.causes.cause import Cause
from samebits.causes.patch_rules import SEEDING, PatchRule, anywhere, nearby
from samebits.causes.specification import InterventionEvidence, Specification

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
