"""Replicas that part are told from shards, from what is each rank's own, and from what is averaged."""

from __future__ import annotations

import pytest
from rank_tapes import RankTape
from sentence_support import evidence_of, notes_of, reason_of

from samebits.comparison.ranks import LeftOut, LeftOutCode, compare_ranks
from samebits.records.notes import NoteCode

DISTRIBUTED = {"sampler_num_replicas": 2, "sampler_shuffle": True, "sampler_seed": 0, "sampler_epoch": 0}


def compared(*tapes, world_size=None):
    records = {rank: tape.record() for rank, tape in enumerate(tapes)}
    return compare_ranks(records, world_size or len(tapes))


def trained(values, *, ddp=("w",), shards=(), start=None, ranks=(0, 1), gradients=None):
    """A rank whose parameter `w` has those values, one for each step."""
    tape = RankTape()
    tape.replicas({"w": values[0] if start is None else start}, ddp, shards, ranks)
    for step, value in enumerate(values):
        given = None if gradients is None else {"w": gradients[step]}
        tape.train({"w": value}, given, {"w.momentum": value})
    return tape


def test_equal_replicas():
    """Identical, with what was compared and what was not."""
    result = compared(trained([1, 2]), trained([1, 2]))

    assert result.comparison.verdict == "identical"
    assert (result.comparison.steps, result.compared) == (2, ("w",))
    assert result.left_out == (LeftOut(LeftOutCode.BUFFERS),)


@pytest.mark.parametrize("ddp", [("w",), ()])
def test_replicas_that_part(ddp):
    """The step, the tensor, the ranks and the line are named, with and without DistributedDataParallel."""
    left = trained([1, 2, 3], ddp=ddp, gradients=[5, 6, 7])
    right = trained([1, 9, 8], ddp=ddp, gradients=[5, 0, 7])
    comparison = compared(left, right).comparison

    assert comparison.verdict == "different"
    assert reason_of(comparison) == "w, w.momentum: ranks 0 and 1 diverge at step 1"
    finding = comparison.findings[0]
    assert (finding.origin.step, finding.origin.names, finding.origin.site.line) == (
        1,
        ("w", "w.momentum"),
        12,
    )
    assert "were not averaged" in evidence_of(finding)[1]


def test_the_odd_one_of_three_ranks_is_named():
    """The largest group is the one that the others part from."""
    everyone = {"ranks": (0, 1, 2)}
    comparison = compared(
        trained([1, 2], **everyone), trained([1, 7], **everyone), trained([1, 2], **everyone)
    ).comparison

    assert reason_of(comparison) == "w, w.momentum: rank 1 diverges from ranks 0 and 2 at step 1"


def test_equal_gradients_point_to_the_optimizer():
    """What was averaged and used differently is another mistake than what was not averaged."""
    comparison = compared(trained([1, 2], gradients=[5, 6]), trained([1, 3], gradients=[5, 6])).comparison

    assert "the optimizer did something different" in evidence_of(comparison.findings[0])[1]


def test_replicas_that_differ_before_the_first_step():
    """A model that one rank loaded after it was wrapped."""
    comparison = compared(trained([1, 2], start=0), trained([3, 4], start=7)).comparison

    assert reason_of(comparison) == "w: ranks 0 and 1 diverge before step 0"


def test_what_is_each_ranks_own_is_no_difference():
    """Different from the start, and nothing says that they are replicas: not judged, and said."""
    result = compared(trained([1, 2], ddp=()), trained([5, 6], ddp=()))

    assert result.comparison.verdict == "not_judged"
    assert LeftOut(LeftOutCode.OWN, ("w",)) in result.left_out


def test_shards_are_not_compared():
    """Each rank has its own part."""
    result = compared(trained([1, 2], ddp=(), shards=["w"]), trained([5, 6], ddp=(), shards=["w"]))

    assert result.comparison.verdict == "not_judged"
    assert LeftOut(LeftOutCode.SHARDS, ("w",)) in result.left_out


def test_replicas_of_a_smaller_group():
    """Pipelines of two ranks each: those of one stage are compared, the stages are not."""
    tapes = [trained([1, 2], ranks=(0, 1)), trained([1, 2], ranks=(0, 1)),
             trained([5, 6], ranks=(2, 3)), trained([5, 6], ranks=(2, 3))]  # fmt: skip

    assert compared(*tapes[:2], world_size=2).comparison.verdict == "identical"


def test_what_is_averaged_from_time_to_time_is_no_difference():
    """Replicas that part and are equal again before the next step are a note."""
    tapes = []
    for rank in (0, 1):
        tape = trained([1], ddp=())
        for step in range(3):
            tape.train({"w": (step, rank)})
            tape.replicas({"w": step})
        tapes.append(tape)
    comparison = compared(*tapes).comparison

    assert comparison.verdict == "identical"
    assert any("averaged from time to time" in note for note in notes_of(comparison))


def test_a_missing_and_a_failed_rank():
    """Equal as far as they go is not identical; the rank that failed first comes first."""
    alive, failed = trained([1, 2, 3]), trained([1, 2])
    assert reason_of(compared(alive, alive, world_size=3).comparison) == "there is no record of rank 2"

    records = {
        0: alive.record("failed", "RuntimeError: closed by peer"),
        1: failed.record("failed", "planted"),
    }
    comparison = compare_ranks(records, 2).comparison
    assert comparison.verdict == "not_judged"
    assert reason_of(comparison).startswith(
        "rank 1 failed after 2 steps (planted); rank 0 failed after 3 steps"
    )
    assert "the ranks made different numbers of steps: 2 on rank 1, 3 on rank 0" in notes_of(comparison)


def test_one_record_alone():
    """Nothing can be compared."""
    assert compared(trained([1]), world_size=2).comparison.verdict == "not_judged"


@pytest.mark.parametrize("text", ["", "[]", "{", "[" * 5000, '{"groups": 3, "shards": [1, {}]}',
                                  '{"groups": [3, {"ranks": "x", "names": 7}]}'])  # fmt: skip
def test_what_a_record_says_is_not_trusted(text):
    """Events with nonsense in them end in a verdict."""
    tape = RankTape()
    tape.add("collective", "replicas", [("param", "w", 1)], text)
    tape.add("collective", "epoch", arguments=text)
    tape.add("collective", "indices", arguments=text)
    tape.train({"w": 1})

    assert compared(tape, tape).comparison.verdict == "identical"


def sharing(first, second, *, facts=({}, {}), whole=True, **more):
    """The comparison of two ranks whose loader gave those batches."""
    tapes = []
    for indices, own in zip((first, second), facts, strict=True):
        tape = trained([1])
        for number, batches in enumerate(indices):
            tape.epoch(0, number, batches, whole=whole, **{**DISTRIBUTED, **more, **own})
        tapes.append(tape)
    return compared(*tapes).comparison


def test_a_partition():
    """No sample twice, none missing: nothing to say."""
    comparison = sharing([[[0, 2], [4, 6]]], [[[1, 3], [5, 7]]])

    assert (comparison.verdict, notes_of(comparison)) == ("identical", ())


def test_samplers_that_do_not_agree():
    """Overlaps of a sampler that is there to divide are a difference, with what the samplers disagree in."""
    comparison = sharing(
        [[[0, 2], [4, 6]]], [[[0, 3], [5, 7]]], facts=({"sampler_seed": 0}, {"sampler_seed": 1})
    )

    assert comparison.verdict == "different"
    assert comparison.findings[0].origin.kind == "batch"
    assert "1 sample came more than once: its samplers have seed 0 on rank 0, 1 on rank 1" in reason_of(
        comparison
    )
    assert "1 of 8 samples is on no rank" in evidence_of(comparison.findings[1])[0]


def test_padding_is_said():
    """DistributedSampler repeats samples where the size cannot be divided."""
    comparison = sharing([[[0, 2, 4, 6]]], [[[1, 3, 5, 0]]], size=7)

    assert comparison.verdict == "identical"
    assert any("1 of 7 samples comes twice" in note for note in notes_of(comparison))


def test_a_forgotten_set_epoch():
    """Epoch 1 repeats the order of epoch 0."""
    comparison = sharing([[[0, 2], [4, 6]]] * 2, [[[1, 3], [5, 7]]] * 2)

    assert any("set_epoch(epoch)` was not called" in note for note in notes_of(comparison))
    other = sharing([[[0, 2], [4, 6]], [[0, 2], [6, 4]]], [[[1, 3], [5, 7]]] * 2)
    assert notes_of(other) == ()


def test_no_sampler_at_all():
    """Every rank takes everything: a note, since an evaluation may want that."""
    facts = {"sampler_num_replicas": None, "sampler": "RandomSampler"}
    tapes = []
    for order in ([0, 1, 2, 3], [3, 2, 1, 0]):
        tape = trained([1])
        tape.epoch(0, 0, [order], size=4, sampler=facts["sampler"])
        tapes.append(tape)
    comparison = compared(*tapes).comparison

    assert comparison.verdict == "identical"
    assert any("every rank takes the same 4 samples" in note for note in notes_of(comparison))


@pytest.mark.parametrize("told", [True, False])
def test_the_same_batches_are_told_once(told):
    """Where it is known that every rank takes the same samples, that they came alike says nothing more."""
    tapes = []
    for _ in range(2):
        tape = RankTape()
        tape.replicas({"w": 1}, ("w",))
        if told:
            tape.epoch(0, 0, [[0, 1]], size=2, sampler="RandomSampler")
        tape.add("batch", "DataLoader", [("value", "x", 7)])
        tape.train({"w": 1})
        tapes.append(tape)
    codes = [note.code for note in compared(*tapes).comparison.notes]

    assert codes == [NoteCode.SAME_SAMPLES if told else NoteCode.SAME_BATCHES]


def test_an_epoch_that_was_left_early_misses_nothing():
    """What was not asked for is not missing; what is dropped on purpose is said."""
    assert notes_of(sharing([[[0, 2]]], [[[1, 3]]], whole=False)) == ()
    dropped = sharing([[[0, 2, 4]]], [[[1, 3, 5]]], sampler_drop_last=True, size=7)
    assert dropped.verdict == "identical"
    assert any("1 of 7 samples are left out (drop_last)" in note for note in notes_of(dropped))


def test_workers_with_the_same_seeds():
    """Rank is not in torch's worker seeds; a `worker_init_fn` may see to it."""
    seeds = {"workers": 2, "worker_seed": 77}
    assert any("same seeds" in n for n in notes_of(sharing([[[0, 1]]], [[[2, 3]]], whole=False, **seeds)))
    assert notes_of(sharing([[[0, 1]]], [[[2, 3]]], whole=False, init=True, **seeds)) == ()
    assert notes_of(sharing([[[0, 1]]], [[[2, 3]]], whole=False, keyed=True, **seeds)) == ()
    other = ({"worker_seed": 77}, {"worker_seed": 78})
    assert notes_of(sharing([[[0, 1]]], [[[2, 3]]], whole=False, workers=2, facts=other)) == ()


def test_unknown_indices_are_left_alone():
    """Where the record holds no more of them, nothing is said of that epoch."""
    assert notes_of(sharing([[[0, 2], None]], [[[0, 2], None]])) == ()
