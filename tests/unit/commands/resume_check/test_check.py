"""Which kills are made, and the verdict over them."""

from __future__ import annotations

from pathlib import Path

import pytest

from samebits.commands.resume_check._check import ResumeRequest, conclude, kill_points
from samebits.commands.resume_check.runs import FirstDifference, Kill
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
    fresh = Kill(1, "identical", "nothing was resumed", resumed_at=0, is_fresh=True)
    different = Kill(5, "different", "it differs", difference=FirstDifference(4, "loss", "the loss"))
    open_ = Kill(4, "not_judged", "it failed")

    assert conclude([identical, open_, different]) == ("different", "it differs")
    assert conclude([identical, open_]) == ("not_judged", "it failed")
    assert conclude([fresh]) == ("not_judged", "nothing was resumed")
    assert conclude([fresh, identical])[0] == "identical"
    assert "started from the beginning" in conclude([fresh, identical])[1]
    assert conclude([])[0] == "not_judged"
