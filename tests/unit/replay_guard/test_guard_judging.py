"""What several executions show, and how it is said."""

from __future__ import annotations

import pytest

from samebits import Mismatch, MismatchKind
from samebits._runtime.frames import Site
from samebits.recording.distance import Difference
from samebits.recording.replay_results import Unrepeated
from samebits.replay_guard._judging import judge_executions, judge_ranks, letters, minority
from samebits.replay_guard.mismatch import DifferingTensor

TRANSIENT, PERSISTENT, OWN = (
    MismatchKind.TRANSIENT,
    MismatchKind.PERSISTENT,
    MismatchKind.NONDETERMINISTIC,
)


@pytest.mark.parametrize(
    ("executions", "kind", "odd"),
    [
        ("aaaa", None, None),
        ("abbb", TRANSIENT, 1),
        ("abaa", TRANSIENT, 2),
        ("aaab", TRANSIENT, 4),
        ("abab", OWN, None),
        ("abca", OWN, None),
        ("abcd", OWN, None),
        ("ab", OWN, None),  # two alone cannot tell
    ],
)
def test_executions(executions, kind, odd):
    judgement = judge_executions(executions)
    assert (judgement.kind, judgement.odd) == (kind, odd)


@pytest.mark.parametrize(
    ("first", "second", "kind", "ranks"),
    [
        ("aaa", "aaa", None, ()),
        ("aba", "aba", PERSISTENT, (1,)),
        ("aba", "aca", PERSISTENT, (1,)),  # never the same, but alone
        ("aba", "aaa", TRANSIENT, (1,)),
        ("aaa", "aab", TRANSIENT, (2,)),
        ("ab", "ab", PERSISTENT, (0, 1)),  # which of two cannot be told
        ("ab", "aa", TRANSIENT, (1,)),
        ("abc", "def", OWN, (0, 1, 2)),
        ("aabb", "aabb", PERSISTENT, (0, 1, 2, 3)),
        ("aaabc", "aaade", OWN, (3, 4)),
        ("aaabb", "aaabb", PERSISTENT, (3, 4)),
    ],
)
def test_ranks(first, second, kind, ranks):
    judgement = judge_ranks(first, second)
    assert (judgement.kind, judgement.ranks) == (kind, ranks)


@pytest.mark.parametrize(
    ("values", "ranks"), [("aaa", ()), ("aba", (1,)), ("ab", (0, 1)), ("abc", (0, 1, 2)), ("a", ())]
)
def test_minority(values, ranks):
    assert minority(values) == ranks


def test_letters():
    assert letters(["x", "y", "x", "z"]) == "abac"
    assert letters(range(28))[-2:] == "??"


def mismatch(**changes):
    facts = {"step": 3, "kind": TRANSIENT, "ranks": (0,), "executions": "abbb", "odd": 1} | changes
    return Mismatch(**facts)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "only the first gave other bits (transient); it is the one whose results the training uses"),
        ({"odd": 2}, "only the second gave other bits"),
        ({"odd": 3}, "only the third"),
        ({"earlier": 1}, "found mismatches there once before"),
        (
            {"kind": PERSISTENT, "odd": None, "executions": "abcd"},
            "all other ranks repeat theirs (persistent)",
        ),
        (
            {"kind": PERSISTENT, "across_ranks": True, "ranks": (2,), "executions": "aab"},
            "step 3, rank 2: the same step, executed on 3 ranks, gave other bits there twice",
        ),
        (
            {"kind": PERSISTENT, "across_ranks": True, "ranks": (0, 1), "executions": "ab"},
            "ranks 0 and 1: the same step gave different bits on 2 ranks",
        ),
        ({"kind": OWN, "odd": None}, "No single op was seen to differ"),
        ({"kind": MismatchKind.DIVERGED, "across_ranks": True}, "the parameters differ between ranks"),
        (
            {"across_ranks": True, "devices": ("A", "B")},
            "unlike devices (A, B), whose kernels may give other bits without a fault",
        ),
        ({"generators": ("numpy",)}, "drew differently from numpy"),
        (
            {"tensors": (DifferingTensor("output", Difference(1, 8, 3, 0.5)),), "n_tensors": 4},
            "Different: output (1 of 8 elements, by up to 0.5, 3 ULP) and 3 more.",
        ),
        (
            {
                "kind": OWN,
                "ops": (Unrepeated("aten::x.default", "", Site("/t.py", 7, "f"), None, 3, 1, 4, 2),),
            },
            "aten::x at /t.py:7 (2 of 4 times) gave other bits. That is a property of the op",
        ),
    ],
)
def test_sentences(changes, words):
    text = str(mismatch(**changes))
    assert words in text
    assert text.endswith(".")
    assert "None" not in text


@pytest.mark.parametrize(
    ("changes", "wrong"),
    [
        ({}, True),
        ({"odd": 2}, False),
        ({"kind": OWN}, None),
        ({"kind": PERSISTENT}, True),
        ({"kind": MismatchKind.DIVERGED}, True),
    ],
)
def test_whether_the_training_is_wrong(changes, wrong):
    assert mismatch(**changes).training_is_wrong is wrong
