"""The result depends on the number of threads of an operation."""

from __future__ import annotations

from samebits.causes.specification import (
    SEEDING,
    Advice,
    Cause,
    InterventionEvidence,
    PatchRule,
    Specification,
    anywhere,
    last_resort,
    nearby,
)

SPECIFICATION = Specification(
    cause=Cause.THREAD_COUNT,
    sentence="depends on the number of threads",
    draws=("torch.set_num",),
    weighty_draws="",
    interventions=(("threads",), ("thread-calls",)),
    evidence=(
        InterventionEvidence("threads"),
        InterventionEvidence("thread-calls"),
        InterventionEvidence("process", 1, acts=False),
        InterventionEvidence("memory-load", 1, acts=False),
        InterventionEvidence("clock", 2, acts=False),
    ),
    advice=(
        Advice(
            "fix the number of threads: `torch.set_num_threads(1)`, or a number that is the same everywhere",
            ("threads",),
        ),
    ),
    patches=(
        *nearby(*SEEDING),
        *anywhere(PatchRule.FIRST_CANDIDATE, PatchRule.FIXED_THREAD_COUNT),
        *last_resort(PatchRule.ONE_THREAD),
    ),
)
