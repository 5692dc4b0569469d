"""The result depends on the order of threads or processes."""

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
    cause=Cause.RACE,
    sentence="depends on which thread or process came first{source}",
    draws=("concurrent.futures.", "multiprocessing.", "queue."),
    weighty_draws="",
    interventions=(("completion",), ("serial-threads",), ("serial-processes",), ("threads",)),
    evidence=(
        InterventionEvidence("completion"),
        InterventionEvidence("serial-threads"),
        InterventionEvidence("serial-processes"),
        InterventionEvidence("workers", 1, acts=False),
        InterventionEvidence("threads", None),
    ),
    advice=(
        Advice(
            "go through the work in the order in which it was given, not in which it ended: iterate "
            "the list of futures itself, not `as_completed`",
            ("completion", "serial-threads"),
            "concurrent.futures.as_completed",
        ),
        Advice(
            "go through the work in the order in which it was given, not in which it ended: iterate "
            "the list of futures itself, not the set that `wait` gives",
            ("completion", "serial-threads"),
            "concurrent.futures.wait",
        ),
        Advice(
            "go through the work in the order in which it was given, not in which it ended: `imap` or"
            " `map` in place of `imap_unordered`",
            ("completion",),
            "multiprocessing.pool",
        ),
        Advice(
            "take what several producers put into one queue in an order of your own: give each producer a "
            "queue and take from them in turn, or send a number along and sort by it",
            ("completion", "serial-threads"),
            "multiprocessing|queue",
        ),
        Advice(
            "let one thread at a time change what is shared, in a fixed order: join the threads, or "
            "give each its own copy and add them up in order",
            ("serial-threads", "completion"),
        ),
    ),
    acts_at_its_line=True,
    patches=(
        *anywhere(PatchRule.ORDER_OF_SUBMISSION),
        *nearby(*SEEDING, PatchRule.LOADER_IN_ORDER),
        *last_resort(PatchRule.NO_WORKERS),
    ),
    no_patch="threads or processes share something: only you can say which of them may go first",
)
