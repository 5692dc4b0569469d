"""What keeps runs from being judged."""

from __future__ import annotations

from samebits.recording.runner import Target
from samebits.report.reasons import sentence_or_none
from samebits.verification import preconditions
from samebits.verification.results import Purpose, ScriptRun

FINISHED = ScriptRun(record="a.sbr", status=0, seconds=1.0, timed_out=False, purpose=Purpose.COMPARE)


def test_a_function_without_a_step_is_called_the_function():
    """A module of samebits runs it; nobody knows its name."""
    target = Target(None, "samebits.pytest_plugin.run_test", ("test_a.py::test_nothing",))
    reason = preconditions.doubt((FINISHED, FINISHED), (), preconditions.script_name(target))
    sentence = "the function took no step and read no value out of torch: nothing to compare"
    assert sentence_or_none(reason) == sentence


def test_a_module_of_the_user_has_its_name():
    assert preconditions.script_name(Target(None, "train", ())) == "module train"
    assert preconditions.script_name(Target(None, "samebits_demo", ())) == "module samebits_demo"
