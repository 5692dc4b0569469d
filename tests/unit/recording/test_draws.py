"""What is kept of a script's draws."""

from __future__ import annotations

import random

from samebits.recording.probes.draws import words_of


def test_the_state_of_a_generator_is_as_long_in_every_run():
    """The addresses that a run holds follow the sizes of all memory, that of the recording too."""
    states = [words_of(random.Random(seed)) for seed in range(50)]

    assert {len(state) for state in states} == {2500}
    assert len(set(states)) == 50


def test_a_generator_that_describes_itself_otherwise():
    """What its own `getstate` would give is not asked for."""

    class Other(random.Random):
        def getstate(self):
            raise NotImplementedError

    assert len(words_of(Other(1))) == 2500
