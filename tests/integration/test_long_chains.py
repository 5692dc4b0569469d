"""Chains of ten and a hundred thousand operations are followed to their beginning."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from samebits.comparison.origin import find_origins

sys.path.insert(0, str(Path(__file__).parents[1] / "unit" / "comparison"))
from event_tape import Tape


def _drawn_with(kind):
    """A chain in which each operation takes a number that its line drew, from a state that differs."""

    def run(tape, value, length):
        if kind == "moved":
            tape.seed(1)
        tape.generator = value
        x = tape.op("ones.default", line=1, result=1)
        for _ in range(length):
            name = "normal.generator" if kind == "given" else "randn.default"
            x = tape.op("add.Tensor", x, tape.op(name, line=3, draws=True), line=4)
        tape.boundary({"w": x})

    return run


def _chained(entered):
    """A chain of operations; what differs enters with the first, or with each."""

    def run(tape, value, length):
        x = tape.op("lift_fresh.default", tape.outside(value), line=3)
        for i in range(length):
            more = [tape.outside((value, i))] if entered == "outside" else []
            arguments = f"{value + i}" if entered == "argument" else ""
            x = tape.op("add.Tensor", x, *more, line=4, arguments=arguments)
        tape.boundary({"w": x})

    return run


@pytest.mark.parametrize(
    ("run", "length"),
    [
        (_drawn_with("given"), 10_000),
        (_drawn_with("moved"), 10_000),
        (_drawn_with("never seeded"), 10_000),
        (_chained("outside"), 10_000),
        (_chained("argument"), 10_000),
        (_chained("first"), 100_000),
    ],
)
def test_a_long_chain_is_followed_to_its_beginning(run, length):
    tapes = Tape(), Tape()
    for value, tape in enumerate(tapes):
        run(tape, value, length)
    found = find_origins(tapes[0].record(), tapes[1].record())
    assert found.complete
    assert found.findings[0].site.line == 3
