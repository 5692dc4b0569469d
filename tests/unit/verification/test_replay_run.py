"""The run in which operations are executed again: when it is made, and what it adds."""

from __future__ import annotations

import pytest
from fake_runs import IDENTICAL, SITE, World, different, finding, request
from sentence_support import evidence_of, notes_of

from samebits.comparison.results import OriginSearch
from samebits.recording.distance import Difference
from samebits.recording.replay_results import ReplaySummary, Skipped, SkipReason, Unrepeated
from samebits.verification import verify

ADD = Unrepeated(
    "aten::index_add_.default", "net", SITE, None, 1, 4, 12, 3, ("float32[3]",), ("float32[3]",), "cuda",
    difference=Difference(2, 3, 1, 0.5),
)  # fmt: skip
SUMMARY = ReplaySummary(3, 20, 5, 4, (ADD,), (Skipped(SkipReason.VIEW, "aten::t.default", 9),))


@pytest.fixture(autouse=True)
def script(tmp_path, monkeypatch):
    """A script to be found; nothing runs it."""
    (tmp_path / "train.py").touch()
    monkeypatch.chdir(tmp_path)


def world(summary=SUMMARY, **fields) -> World:
    return World(infos={"replay": {"replay": summary.to_dict()}}, **fields)


def test_no_run_is_made_unless_asked_for(tmp_path):
    """The ordinary pair only."""
    scripted = world()
    result = verify(request(tmp_path), tools=scripted.tools())

    assert scripted.names == ["run-1", "run-2"]
    assert result.comparison.replayed is None


def test_an_operation_that_does_not_repeat_leaves_the_verdict_alone(tmp_path):
    """Its finding has cause, evidence and the remedy that torch knows."""
    scripted = world()
    result = verify(request(tmp_path, replay=3), tools=scripted.tools())

    assert scripted.names == ["run-1", "run-2", "replay"]
    assert scripted.settings("replay").replay == 3
    assert result.comparison.verdict == "identical"
    assert result.comparison.findings == ()
    (found,) = result.comparison.replayed.findings
    assert (found.origin.kind, found.cause, found.origin.op) == ("replay", "nondeterministic-kernel", ADD.op)
    assert "3 of 12 repetitions" in evidence_of(found)[0]
    assert "use_deterministic_algorithms" in found.remedy.text
    assert result.n_values >= 0
    assert len(result.compared) == 2


def test_a_run_that_gave_other_bits_is_noted(tmp_path):
    """The replay run is compared with the first one."""
    scripted = world(verdicts={"replay": different()})
    result = verify(request(tmp_path, replay=1), tools=scripted.tools())

    assert result.comparison.verdict == "identical"
    assert any("gave different bits from run 1" in note for note in notes_of(result.comparison))


def test_a_script_that_fails_while_it_is_executed_again_is_noted(tmp_path):
    """The verdict of the pair stays, and what was seen until then."""
    failed = {"status": "failed", "failure": "MemoryError", "replay": SUMMARY.to_dict()}
    scripted = World(infos={"replay": failed})
    result = verify(request(tmp_path, replay=1), tools=scripted.tools())

    assert result.comparison.verdict == "identical"
    assert any("MemoryError" in note for note in notes_of(result.comparison))
    assert result.comparison.replayed.summary == SUMMARY


def test_a_run_without_a_record_is_noted(tmp_path):
    """Nothing is known of the operations."""
    scripted = World(infos={"replay": None})
    result = verify(request(tmp_path, replay=1), tools=scripted.tools())

    assert result.comparison.replayed is None
    assert any("no record" in note for note in notes_of(result.comparison))


def test_an_origin_gets_the_evidence_of_the_replay(tmp_path):
    """Where the same operation at the same line did not repeat."""
    origin = finding(op=ADD.op, origin_kind="kernel", cause="nondeterministic-kernel")
    scripted = world(
        verdicts={"run-2": different(), "op-1b": different()}, origins={"op-1b": OriginSearch((origin,))}
    )
    result = verify(request(tmp_path, replay=3), tools=scripted.tools())

    assert result.comparison.verdict == "different"
    assert any("3 of 12 repetitions" in line for line in evidence_of(result.comparison.findings[0]))
    assert IDENTICAL.replayed is None
