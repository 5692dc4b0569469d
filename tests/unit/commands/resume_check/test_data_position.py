"""How a batch that was not due is named."""

from __future__ import annotations

from types import SimpleNamespace

from samebits.commands.resume_check._data_position import Loaded, wrong_batch
from samebits.commands.resume_check._state_log import Batch, StateLogLines
from samebits.commands.resume_facts import Fact, FactCode, Part, Position


def loaded(passes, *, drawn=""):
    """A run that had these batches, one each step; what is in one follows from its samples."""
    batches, events = [], []
    for pass_number, rows in enumerate(passes):
        for number, indices in enumerate(rows):
            step = len(batches)
            batches.append(Batch(step, step, ("a.py", 1), number, pass_number, tuple(indices)))
            events.append(SimpleNamespace(seq=step, digests=(f"{indices}{drawn}".encode(),)))
    record = SimpleNamespace(events=lambda _: events, event=events.__getitem__)
    return Loaded(StateLogLines(tuple(batches), ()), record)


def named(whole, other, step):
    """The fact about the first batch of a resumed run."""
    found = wrong_batch(whole, other, step, step)
    assert found is not None
    assert found.part == Part.DATA
    return found.fact


def test_batches_of_one_sample_in_another_order():
    """Each sample comes in each pass: that it came at another step does not tell of batches left out."""
    whole = loaded([[[0], [1], [2], [3], [4]], [[3], [0], [4], [1], [2]]])
    other = loaded([[[1], [3], [2], [0], [4]]])

    assert named(whole, other, 5) == Fact.of(FactCode.OTHER_SAMPLES, (1,), (3,), Position(5, 0, 1))


def test_another_order_with_augmentation():
    """The same, where the contents differ too."""
    whole = loaded([[[0], [1], [2], [3], [4]], [[3], [0], [4], [1], [2]]])
    other = loaded([[[1], [3], [2], [0], [4]]], drawn="else")

    assert named(whole, other, 5).code == FactCode.OTHER_SAMPLES


def test_a_chance_match_in_the_same_pass_does_not_hide_the_pass_that_is_repeated():
    """The last batch of the pass that was due is as the first of the first pass; what follows tells."""
    whole = loaded([[[1, 5], [2, 3], [4, 0]], [[3, 4], [0, 2], [1, 5]]])
    other = loaded([[[1, 5], [2, 3], [4, 0]]])

    fact = Fact.of(FactCode.BATCH_REPEATED, Position(0, 0, 0), Position(3, 0, 1), False)
    assert named(whole, other, 3) == fact


def test_a_batch_that_is_left_out():
    """What follows it is what follows in the whole run."""
    whole = loaded([[[0], [1], [2], [3], [4]]])
    other = loaded([[[2], [3], [4]]])

    fact = Fact.of(FactCode.BATCHES_SKIPPED, Position(2, 2, 0), Position(1, 1, 0), False)
    assert named(whole, other, 1) == fact


def test_a_batch_that_is_left_out_with_augmentation():
    """The samples are known by their numbers, though their contents differ."""
    whole = loaded([[[0], [1], [2], [3], [4]]])
    other = loaded([[[2], [3], [4]]], drawn="else")

    fact = Fact.of(FactCode.BATCHES_SKIPPED, Position(2, 2, 0), Position(1, 1, 0), True)
    assert named(whole, other, 1) == fact


def test_the_samples_that_were_due_with_augmentation():
    """The place is right, what was drawn is not."""
    whole, other = loaded([[[0], [1], [2]]]), loaded([[[1], [2]]], drawn="else")

    found = wrong_batch(whole, other, 1, 1)

    assert found is not None
    assert (found.part, found.fact) == (Part.AUGMENTATION, Fact.of(FactCode.SAMPLES_CHANGED, (1,)))
