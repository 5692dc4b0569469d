"""ReplayGuard on several ranks: the rank that is wrong is named on all, and training keeps its bits."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rank_support import launch, needs_gloo

pytestmark = needs_gloo
SCRIPT = Path(__file__).parent / "replay_ranks.py"
CLEAN = (
    "none", "own buffers", "static graph", "views", "unused, static", "accumulate", "watch", "inner",
    "watch, inner",
)  # fmt: skip


def told(ranks, faults, folder):
    """Fault -> what each rank was told."""
    done = launch(ranks, SCRIPT, folder, *faults, cwd=folder, OMP_NUM_THREADS="1")
    assert done.returncode == 0, done.stderr
    lines = [json.loads((folder / f"{rank}.json").read_text()) for rank in range(ranks)]
    return {fault: [each[number] for each in lines] for number, fault in enumerate(faults)}


@pytest.fixture(scope="module")
def three(tmp_path_factory):
    faults = (
        "transient", "persistent", "random", "all random", "diverged", "raise", "inner, transient",
        "watch, at first",
    )  # fmt: skip
    return told(3, faults, tmp_path_factory.mktemp("three"))


@pytest.mark.parametrize("ranks", [2, 3])
def test_clean_trainings_keep_their_bits(ranks, tmp_path):
    for fault, lines in told(ranks, CLEAN, tmp_path).items():
        assert [line["found"] for line in lines] == [[]] * ranks, fault
        assert [line["same"] for line in lines] == [True] * ranks, fault


@pytest.mark.parametrize(
    ("fault", "kind", "executions"),
    [
        ("transient", "transient", "abbb"),
        ("persistent", "persistent", "aba"),
        ("diverged", "diverged", "aba"),
        # Not blamed on all: what they average is not compared, though the guard has only the inner model.
        ("inner, transient", "transient", "abaa"),
        # Not taken for gradients that come from elsewhere: the other ranks repeat theirs.
        ("watch, at first", "transient", "abbb"),
    ],
)
def test_the_faulty_rank_is_named_on_all(three, fault, kind, executions):
    for line in three[fault]:
        found = line["found"][0]
        assert (found["kind"], found["ranks"], found["executions"]) == (kind, [1], executions)
        assert "rank 1" in found["text"]
        assert found["tensors"]


def test_one_rank_that_never_repeats_is_faulty(three):
    for line in three["random"]:
        found = line["found"][0]
        assert (found["kind"], found["ranks"]) == ("persistent", [1])
        assert "all other ranks repeat theirs" in found["text"]


def test_ranks_that_all_never_repeat_are_not_faulty(three):
    for line in three["all random"]:
        assert {found["kind"] for found in line["found"]} == {"nondeterministic"}
        assert [found["ranks"] for found in line["found"][:3]] == [[0], [1], [2]]


def test_a_persistent_fault_is_found_in_every_step(three):
    for line in three["persistent"]:
        assert [found["step"] for found in line["found"]] == [0, 1, 2, 3]


def test_all_ranks_raise_together(three):
    for line in three["raise"]:
        assert line["raised"].startswith("step 1, rank 1")


def test_a_wrapper_that_notes_used_parameters_is_refused(tmp_path):
    (line, _) = told(2, ["unused"], tmp_path)["unused"]
    assert line["raised"] == "replay-unused-parameters"


def test_ranks_with_different_numbers_of_batches_are_refused(tmp_path):
    """In `join()` a rank without batches would wait for the others, which wait for its guard."""
    for line in told(2, ["join"], tmp_path)["join"]:
        assert line["raised"] == "replay-join"


def test_of_two_ranks_it_cannot_be_told_which_is_wrong(tmp_path):
    for line in told(2, ["persistent", "transient"], tmp_path)["persistent"]:
        found = line["found"][0]
        assert (found["kind"], found["ranks"], found["executions"]) == ("persistent", [0, 1], "ab")
        assert "cannot be told" in found["text"]


@pytest.mark.parametrize("fault", ["not asked, persistent", "alone, persistent"])
def test_without_a_comparison_of_ranks_a_persistent_fault_is_not_seen(others, fault):
    """`across_ranks=False`, and its default where no module is a wrapper."""
    assert [line["found"] for line in others[fault]] == [[]] * 3


def test_a_comparison_of_ranks_can_be_asked_for(others):
    """The script averages gradients itself: `across_ranks=True` finds what the default does not."""
    for line in others["alone, persistent, asked"]:
        found = line["found"][0]
        assert (found["kind"], found["ranks"]) == ("persistent", [1])


@pytest.fixture(scope="module")
def others(tmp_path_factory):
    faults = ("alone", "not asked, persistent", "alone, persistent", "alone, persistent, asked")
    return told(3, faults, tmp_path_factory.mktemp("others"))


def test_a_training_without_a_wrapper_keeps_its_bits(others):
    assert [(line["found"], line["same"]) for line in others["alone"]] == [([], True)] * 3


def test_ranks_that_train_together_in_a_group(tmp_path):
    """The others are told nothing; the faulty rank has its number in the whole training."""
    lines = told(4, ["pairs", "pairs, transient", "pairs, persistent"], tmp_path)
    assert [(line["found"], line["same"]) for line in lines["pairs"]] == [([], True)] * 4
    found = [line["found"] for line in lines["pairs, transient"]]
    assert found[:2] == [[], []]
    assert [(each[0]["kind"], each[0]["ranks"]) for each in found[2:]] == [("transient", [3])] * 2
    found = [line["found"] for line in lines["pairs, persistent"]]
    assert found[:2] == [[], []]
    assert [(each[0]["kind"], each[0]["ranks"]) for each in found[2:]] == [("persistent", [2, 3])] * 2
