"""Chains of ten and a hundred thousand operations are followed to their beginning."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from samebits.comparison.origin import find_origins

sys.path.insert(0, str(Path(__file__).parents[1] / "unit" / "comparison"))
from event_tape import Tape, chained, drawn_with


@pytest.mark.parametrize(
    ("run", "length"),
    [
        (drawn_with("given"), 10_000),
        (drawn_with("moved"), 10_000),
        (drawn_with("never seeded"), 10_000),
        (chained("outside"), 10_000),
        (chained("argument"), 10_000),
        (chained("first"), 100_000),
    ],
)
def test_a_long_chain_is_followed_to_its_beginning(run, length):
    tapes = Tape(), Tape()
    for value, tape in enumerate(tapes):
        run(tape, value, length)
    found = find_origins(tapes[0].record(), tapes[1].record())
    assert found.complete
    assert found.findings[0].origin.site.line == 3
