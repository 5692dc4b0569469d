"""What is said of a generator that is elsewhere."""

from __future__ import annotations

import pytest

from samebits.commands.resume_check._alignment import Start
from samebits.commands.resume_check._omissions import Boundary, _where
from samebits.commands.resume_check._state_log import Before


def before(step, state):
    """The state before a step, of one generator only."""
    return Before(step, "", "", "", {"torch": state}, {}, {})


@pytest.mark.parametrize(
    ("seen", "words"),
    [
        ({"torch": ": as before step 0"}, "not restored: as before step 0"),
        ({}, "not restored, or drawn from since: "),
    ],
)
def test_a_generator_that_stands_elsewhere(seen, words):
    """That it was not restored is said only where it stands as it once did."""
    at = Boundary(Start(3), before(3, "a"), before(0, "b"), before(0, "c"))

    assert _where("torch", at, {}, seen).startswith(words)
