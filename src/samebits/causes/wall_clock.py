"""A time decides: a date, or how long something took."""

from __future__ import annotations

from samebits.causes.cause import Cause
from samebits.causes.patch_rules import SEEDING, PatchRule, anywhere, nearby
from samebits.causes.specification import Advice, InterventionEvidence, Specification

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
            "count steps or samples, not seconds: put a number in the place of the time that decides",
            (_INTERVENTION,),
            "time.(perf_counter|monotonic|process_time|thread_time)",
        ),
        Advice(
            "pass the date in as an argument, so that a run can be given the same one again",
            (_INTERVENTION,),
            "datetime|time.(localtime|strftime|ctime|gmtime)",
        ),
        Advice("put a number in the place of the time; print it if it is to vary", (_INTERVENTION,)),
    ),
    never_alike=True,
    acts_at_its_line=True,
    patches=(
        *anywhere(*SEEDING, PatchRule.FIRST_CANDIDATE, PatchRule.FIXED_THREAD_COUNT),
        *nearby(PatchRule.FIXED_TIME),
    ),
    no_patch="a time reached the numbers: a fixed number of steps or samples has to come from you",
)
