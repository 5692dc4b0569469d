"""The result depends on the operating system's entropy, which nothing can seed."""

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

_INTERVENTION = "entropy"

SPECIFICATION = Specification(
    cause=Cause.OS_ENTROPY,
    sentence="took entropy of the operating system{source}",
    draws=("random.SystemRandom", "uuid.", "secrets.", "tempfile.", "os.urandom", "/dev/"),
    weighty_draws=r"random\.SystemRandom|secrets\.(choice|randbelow)",
    is_drawn=True,
    interventions=((_INTERVENTION,),),
    evidence=(
        InterventionEvidence(_INTERVENTION),
        InterventionEvidence("listing", 1, acts=False),
        InterventionEvidence("seed-numpy", 2, acts=False),
    ),
    advice=(
        Advice(
            "make the identifier from what it names, or from seeded numbers; `uuid` differs in each run",
            (_INTERVENTION,),
            "uuid",
        ),
        Advice(
            "draw from `random`, seeded: `secrets` and `SystemRandom` cannot be",
            (_INTERVENTION,),
            "secrets|random.SystemRandom",
        ),
        Advice(
            "draw the bytes from `random`, seeded: `random.randbytes` instead of `os.urandom`",
            (_INTERVENTION,),
            "os.urandom",
        ),
        Advice(
            "sort by a name or number of your own, not by the random name of a temporary file",
            (_INTERVENTION,),
            "tempfile",
        ),
        Advice("replace the system's entropy with a number", (_INTERVENTION,)),
    ),
    seeded_by=_INTERVENTION,
    never_alike=True,
    patches=(
        *anywhere(*SEEDING),
        *nearby(PatchRule.SEEDED_ENTROPY),
    ),
)
