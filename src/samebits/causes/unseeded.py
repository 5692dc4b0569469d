"""The common specification of generators that nothing seeds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from samebits.causes.specification import (
    SEEDING,
    Advice,
    InterventionEvidence,
    PatchRule,
    PatchUse,
    Reach,
    Specification,
    anywhere,
    last_resort,
    nearby,
)

if TYPE_CHECKING:
    from samebits.causes.specification import Cause
    from samebits.rng.sources.source import Library

_OF_PACKAGES = {
    "faker": "call `Faker.seed(0)` after the imports",
    "optuna": "give the study a sampler with a seed: `create_study(sampler=TPESampler(seed=0))`",
}
"""Package -> advice where the function that the user's line calls takes no seed itself."""


def unseeded(cause: Cause, library: Library, *advice: Advice) -> Specification:
    """Make the specification of a library's generators that nothing seeds.

    Args:
        cause: the cause.
        library: the library.
        advice: advice beside giving a chosen seed where a seed is given.
    """
    intervention = library.intervention
    return Specification(
        cause=cause,
        sentence="drew from {library}'s global generator, which nothing seeds",
        draws=(library.draws,),
        weighty_draws="",
        is_drawn=True,
        interventions=((intervention,),),
        evidence=(InterventionEvidence(intervention),),
        advice=(
            Advice(
                "seed with a number: the present seed differs in each run",
                (intervention,),
                "seed$",
            ),
            *advice,
        ),
        library=library.name,
        seeded_by=intervention,
        never_alike=True,
        patches=(
            *anywhere(*SEEDING),
            *nearby(PatchRule.DEFAULT_OF_SEED_OPTION),
            PatchUse(PatchRule.REPLACE_ANY_SEED, Reach.UNKNOWN_SEED),
            *last_resort(PatchRule.LOADER_GENERATOR),
        ),
    )


def made_by_library(intervention: str) -> tuple[Advice, ...]:
    """Return advice for a generator that a library makes for the user."""
    packages = (
        Advice(text, (intervention,), f"{name}[.]", by_library=True) for name, text in _OF_PACKAGES.items()
    )
    general = Advice(
        "what is called here makes a generator of its own: give it a seed, `seed=0` or `random_state=0` "
        "where it takes one; a seed for the library's global generator does not reach it",
        (intervention,),
        by_library=True,
    )
    return (*packages, general)


def in_worker(intervention: str) -> Advice:
    """Return advice for draws in the workers of a DataLoader."""
    return Advice(
        "seed it from torch in the worker, in `worker_init_fn` or at the first sample: "
        "`torch.initial_seed()` differs in each worker and is the same in each run",
        (intervention,),
        in_worker=True,
    )
