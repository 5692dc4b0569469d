"""Alignment of event streams by content."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from event_tape import Tape

from samebits.comparison._alignment import align, align_events, align_levels


def increasing(pairs):
    return all(i < k and j < m for (i, j), (k, m) in pairwise(pairs))


def test_equal_streams_match_entirely():
    keys = [random.Random(1).randrange(5) for _ in range(500)]
    assert align(keys, keys) == [(i, i) for i in range(500)]


def test_an_extra_stretch_in_one_run_is_left_out():
    """A log line taken by time adds events to one run only."""
    keys = list(range(100))
    longer = [*keys[:40], 900, 901, 902, *keys[40:]]
    assert align(keys, longer) == [(i, i if i < 40 else i + 3) for i in range(100)]


def test_extra_turn_of_a_loop_is_the_last_one():
    a = [1, *[2, 3] * 5, 4]
    b = [1, *[2, 3] * 4, 4]
    assert align(a, b) == [(i, i) for i in range(9)] + [(11, 9)]


def test_empty_streams():
    assert align([], [1]) == []
    assert align_levels([], []) == []


@pytest.mark.parametrize("seed", range(30))
def test_random_insertions_are_found(seed):
    """Whatever is inserted with keys of its own, what is common is matched completely."""
    rng = random.Random(seed)
    common = [rng.randrange(20) for _ in range(rng.randrange(1, 400))]
    a, b = [], []
    for key in common:
        a += [1000 + rng.randrange(3)] * rng.choice([0, 0, 0, 2])
        b += [2000 + rng.randrange(3)] * rng.choice([0, 0, 0, 3])
        a.append(key)
        b.append(key)
    pairs = align(a, b)
    assert increasing(pairs)
    assert [a[i] for i, _ in pairs] == [b[j] for _, j in pairs]
    assert len(pairs) >= 0.9 * len(common)


def test_large_streams_without_unique_keys_are_aligned_in_time():
    rng = random.Random(0)
    a = [rng.randrange(3) for _ in range(50_000)]
    b = [*a[:20_000], 7, *a[20_000:40_000], *a[40_010:]]
    pairs = align(a, b)
    assert increasing(pairs)
    assert len(pairs) > 49_000


def test_strict_keys_come_first():
    """Of two calls at one line the one with the same contents is the partner, not the first one."""
    a = [(10, 1, 1), (20, 2, 2), (11, 1, 1)]
    b = [(20, 2, 2), (11, 1, 1)]
    assert align_levels(a, b) == [(1, 0), (2, 1)]


def test_loose_keys_match_changed_shapes():
    a = [(1, 1, 1), (2, 2, 5), (3, 3, 3)]
    b = [(1, 1, 1), (4, 4, 5), (3, 3, 3)]
    assert align_levels(a, b) == [(0, 0), (1, 1), (2, 2)]


def threaded(order, names=("T1", "T2")):
    tape = Tape()
    sources = {name: tape.outside(name) for name in ("x", "y")}
    for which in order:
        thread = names[0] if which == "x" else names[1]
        tape.op("mul.Tensor", sources[which], line=7, thread=thread)
    return tape.log


def test_events_of_threads_match_in_any_order():
    """Threads interleave differently in each run."""
    a, b = threaded("xy"), threaded("yx")
    assert align_events(a, b).to_b == {0: 1, 1: 0}


def test_work_that_another_thread_took_matches_by_contents():
    """A pool hands out its jobs differently in each run."""
    a, b = threaded("xy"), threaded("xy", names=("T2", "T1"))
    assert align_events(a, b).to_b == {0: 0, 1: 1}


def test_the_same_contents_match_in_any_order():
    """Iteration over a set."""
    tapes = Tape(), Tape()
    for tape, order in zip(tapes, ("xyz", "zxy"), strict=True):
        for name in order:
            tape.op("exp.default", tape.outside(name), line=3)
    assert align_events(tapes[0].log, tapes[1].log).to_b == {0: 1, 1: 2, 2: 0}


def test_noisy_work_that_another_thread_took_matches_by_what_it_got():
    tapes = Tape(), Tape()
    for noise, tape in enumerate(tapes):
        for thread, job in zip(("T1", "T2"), "xy" if noise else "yx", strict=True):
            tape.op("mul.Tensor", tape.outside(job), line=7, thread=thread, noise=noise)
    assert align_events(tapes[0].log, tapes[1].log).to_b == {0: 1, 1: 0}


def test_what_is_left_of_threads_is_aligned_across_them():
    tapes = Tape(), Tape()
    for noise, tape in enumerate(tapes):
        tape.op("mul.Tensor", tape.outside(noise), line=7, thread=f"pool_{noise}")
    assert align_events(tapes[0].log, tapes[1].log).to_b == {0: 0}


def test_equal_results_come_before_equal_inputs():
    tapes = Tape(), Tape()
    for tape, noises in zip(tapes, ("pq", "qp"), strict=True):
        for noise in noises:
            tape.op("exp.default", tape.outside("x"), line=3, noise=noise)
    assert align_events(tapes[0].log, tapes[1].log).to_b == {0: 1, 1: 0}


def test_what_moved_is_matched_last():
    tapes = Tape(), Tape()
    for noise, tape in enumerate(tapes):
        lines = [9, 3, 4, 5, 6] if noise else [3, 4, 5, 6, 9]
        for line in lines:
            value = f"equal {line}" if line in (4, 6) else noise
            tape.op("exp.default", tape.outside(value), line=line)
    assert align_events(tapes[0].log, tapes[1].log).to_b == {0: 1, 1: 2, 2: 3, 3: 4, 4: 0}


def test_a_log_line_at_another_time_does_not_split_a_loop():
    """The log reads the same values in both runs, in another turn of the loop."""
    tapes = Tape(), Tape()
    for noise, tape in enumerate(tapes):
        for turn in range(4):
            if turn == 1 + noise:
                tape.op("norm.default", tape.outside("constant"), line=9)
            tape.op("mul.Tensor", tape.outside((noise, turn)), line=5)
    pairs = align_events(tapes[0].log, tapes[1].log).to_b
    turns = [[event.seq for event in tape.log if event.site.line == 5] for tape in tapes]
    assert [pairs[seq] for seq in turns[0]] == turns[1]


def test_what_is_equal_says_where_the_rest_belongs():
    """The same helper function serves a log line in one run, and then training in both."""
    tapes = Tape(), Tape()
    for noise, tape in enumerate(tapes):
        if noise == 0:
            tape.op("norm.default", tape.outside("log"), line=9)
        tape.op("exp.default", tape.outside("equal"), line=3)
        tape.op("norm.default", tape.outside(noise), line=9)
    assert align_events(tapes[0].log, tapes[1].log).to_b == {1: 0, 2: 1}


def test_folders_do_not_matter():
    tape, other = Tape(file="/a/train.py"), Tape(file="/b/train.py")
    for t in (tape, other):
        t.op("ones.default", line=3, result=1)
    assert align_events(tape.log, other.log).to_b == {0: 0}
