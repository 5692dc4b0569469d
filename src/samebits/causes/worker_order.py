"""The result depends on the order of a DataLoader's workers."""

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
    cause=Cause.WORKER_ORDER,
    sentence="depends on which worker of the loader came first",
    interventions=(("workers",), ("completion",)),
    evidence=(
        InterventionEvidence("workers"),
        InterventionEvidence("completion", 1),
        InterventionEvidence("seed-python", 1),
        InterventionEvidence("seed-numpy", 1),
        InterventionEvidence("process", 2, acts=False),
    ),
    advice=(
        Advice(
            "let no sample depend on which worker takes it or when: no shared counters or queues, "
            "`in_order=True`, seeds from `torch.initial_seed()`",
            ("workers",),
        ),
    ),
    acts_at_its_line=True,
    patches=(
        *anywhere(PatchRule.ORDER_OF_SUBMISSION, *SEEDING),
        *nearby(PatchRule.FIXED_PROCESS_FACTS, PatchRule.LOADER_IN_ORDER),
        *last_resort(PatchRule.NO_WORKERS),
    ),
    no_patch="workers share something: give each its own part of the data",
)
