"""The result depends on a time: a date, or a duration."""

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

_INTERVENTION = "clock"

SPECIFICATION = Specification(
    cause=Cause.WALL_CLOCK,
    sentence="read the clock{source}",
    draws=("datetime.", "time."),
    is_drawn=True,
    interventions=((_INTERVENTION,),),
    evidence=(InterventionEvidence(_INTERVENTION), InterventionEvidence("file-times", 1, acts=False)),
    advice=(
        Advice(
            "count steps or samples, not seconds: replace the time that decides with a number",
            (_INTERVENTION,),
            "time.(perf_counter|monotonic|process_time|thread_time)",
        ),
        Advice(
            "pass the date in as an argument, so that a run can get the same date again",
            (_INTERVENTION,),
            "datetime|time.(localtime|strftime|ctime|gmtime)",
        ),
        Advice("replace the time with a number; print the time if it should vary", (_INTERVENTION,)),
    ),
    never_alike=True,
    acts_at_its_line=True,
    patches=(
        *anywhere(*SEEDING, PatchRule.FIRST_CANDIDATE, PatchRule.FIXED_THREAD_COUNT),
        *nearby(PatchRule.FIXED_TIME),
    ),
    no_patch="a time reached the numbers: a fixed number of steps or samples has to come from you",
)
