"""A choice depends on how long something took."""

from __future__ import annotations

from samebits.causes.specification import (
    Advice,
    Cause,
    InterventionEvidence,
    PatchRule,
    Specification,
    anywhere,
    nearby,
)

SPECIFICATION = Specification(
    cause=Cause.AUTOTUNING,
    sentence="depends on a choice that was made by timing",
    interventions=(("autotuning",), ("clock",), ("eager",)),
    evidence=(
        InterventionEvidence("autotuning"),
        InterventionEvidence("clock", 1),
        InterventionEvidence("eager", 1),
        InterventionEvidence("thread-calls", 1, acts=False),
    ),
    advice=(
        Advice(
            "decide once and write it down: a choice by timing can differ in each run",
            ("autotuning", "clock"),
        ),
    ),
    patches=(
        *anywhere(PatchRule.FIRST_CANDIDATE),
        *nearby(PatchRule.NO_BENCHMARKS),
    ),
)
