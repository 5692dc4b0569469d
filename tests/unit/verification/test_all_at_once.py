"""Runs that an executor makes: all at the same time, and perhaps on different machines."""

from __future__ import annotations

import pytest
from fake_runs import World, different, finding, request
from sentence_support import notes_of

from samebits.verification import verify


@pytest.fixture(autouse=True)
def script(tmp_path, monkeypatch):
    """There is a train.py, which is never run."""
    (tmp_path / "train.py").touch()
    monkeypatch.chdir(tmp_path)


def on(processor: str) -> dict:
    """Changes to what a record says of its run."""
    return {"environment": {"machine": {"processor": processor, "instructions": ["avx2"]}}}


def test_all_compared_runs_are_made_at_the_same_time(tmp_path):
    """None can be told to stop where it differs from another."""
    world = World()

    result = verify(request(tmp_path, runs=4, all_at_once=True), tools=world.tools())

    assert world.together == [["run-1", "run-2", "run-3", "run-4"]]
    assert [settings.reference for _, settings in world.made] == [""] * 4
    assert result.comparison.verdict == "identical"
    assert len(result.runs) == 4


def test_a_difference_between_processors_is_said_and_not_explained(tmp_path):
    """It is no proof of nondeterminism."""
    world = World(verdicts={"run-2": different(2, finding())}, infos={"run-1": on("A"), "run-2": on("B")})

    result = verify(request(tmp_path, all_at_once=True), tools=world.tools())

    assert result.comparison.verdict == "different"
    assert world.names == ["run-1", "run-2"]
    (note,) = [text for text in notes_of(result.comparison) if "two kinds of processors" in text]
    assert "one machine (A) and run 2 on one machine (B)" in note


def test_a_difference_on_one_kind_of_processor_is_explained(tmp_path):
    """Both of a pair are made at the same time."""
    world = World(verdicts={"run-2": different(2, finding())}, infos={"run-1": on("A"), "run-2": on("A")})

    result = verify(request(tmp_path, all_at_once=True), tools=world.tools())

    assert not any("processors" in text for text in notes_of(result.comparison))
    assert world.together[1] == ["op-1a", "op-1b"]
