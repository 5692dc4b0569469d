"""Which kills are made, and the verdict over them."""

from __future__ import annotations

from pathlib import Path

import pytest

from samebits.commands.resume_check._check import ResumeRequest, conclude, kill_points
from samebits.commands.resume_check.runs import Ending, Kill
from samebits.commands.resume_facts import DifferenceKind, Fact, FactCode, FirstDifference
from samebits.comparison.reasons import Reason, ReasonCode
from samebits.errors import SamebitsError
from samebits.recording.runner import Target


def request(**fields):
    """A request for some script."""
    return ResumeRequest(Target("a.py", None, ()), (), Path("records"), Path(), **fields)


def test_kill_points():
    """Chosen, drawn or by default; always with a step after them."""
    assert kill_points(request(kill_after=(7, 3, 7)), 10) == (3, 7)
    assert kill_points(request(), 12) == (6, 9)
    assert kill_points(request(), 2) == (1,)
    drawn = kill_points(request(kills=50), 8)
    assert drawn == tuple(range(1, 8))
    for points, steps in (((8,), 8), ((), 1)):
        with pytest.raises(SamebitsError) as error:
            kill_points(request(kill_after=points), steps)
        assert error.value.slug == "resume-kill-late"


def test_the_verdict_over_all_kills():
    """One difference is enough, then one that cannot be judged; a fresh start counts for nothing."""
    identical = Kill(3, "identical", resumed_at=2)
    nothing = Reason.of(ReasonCode.NOTHING_RESUMED, 1, ())
    fresh = Kill(1, "identical", nothing, resumed_at=0, is_fresh=True)
    loss = FirstDifference(4, DifferenceKind.LOSS, Fact.of(FactCode.LOSS))
    differs = Reason.of(ReasonCode.RESUMED_DIFFERS, 5, False, loss)
    different = Kill(5, "different", differs, difference=loss)
    failed = Reason.of(ReasonCode.RESUMED_RUN_FAILED, 4, Ending(1, "KeyError: 'm'"))
    open_ = Kill(4, "not_judged", failed)

    assert conclude([identical, open_, different]) == ("different", differs)
    assert conclude([identical, open_]) == ("not_judged", failed)
    assert conclude([fresh]) == ("not_judged", nothing)
    assert conclude([fresh, identical]) == ("identical", Reason.of(ReasonCode.KILLS_IDENTICAL, 1, 1))
    assert conclude([]) == ("not_judged", Reason.of(ReasonCode.NO_RUN_KILLED))
