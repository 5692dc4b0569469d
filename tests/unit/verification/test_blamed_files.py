"""What is said where a run reads what the one before it wrote."""

from __future__ import annotations

from types import SimpleNamespace

from sentence_support import text_reason

from samebits.comparison.results import Comparison
from samebits.verification.user_files import blamed


def test_runs_of_other_lengths_have_no_event_that_could_be_blamed():
    comparison = Comparison("different", text_reason("the runs made different numbers of steps, 7 and 9"), 7)
    assert blamed(comparison, (SimpleNamespace(path="cache.json", site=None),)) == comparison
