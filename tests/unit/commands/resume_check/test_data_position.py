"""How a batch that was not due is named."""

from __future__ import annotations

from types import SimpleNamespace

from samebits.commands.resume_check._data_position import Loaded, wrong_batch
from samebits.commands.resume_check._state_log import Batch, StateLogLines


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
    """What is said of the first batch of a resumed run."""
    found = wrong_batch(whole, other, step, step)
    assert found is not None
    return found.text


def test_batches_of_one_sample_in_another_order():
    """Each sample comes in each pass: that it came at another step does not tell of batches left out."""
    whole = loaded([[[0], [1], [2], [3], [4]], [[3], [0], [4], [1], [2]]])
    other = loaded([[[1], [3], [2], [0], [4]]])

    assert named(whole, other, 5).startswith("the order is different: samples 1 came where 3 were due")


def test_another_order_with_augmentation():
    """The same, where the contents differ too."""
    whole = loaded([[[0], [1], [2], [3], [4]], [[3], [0], [4], [1], [2]]])
    other = loaded([[[1], [3], [2], [0], [4]]], drawn="else")

    assert named(whole, other, 5).startswith("the order is different")


def test_a_chance_match_in_the_same_pass_does_not_hide_the_pass_that_is_repeated():
    """The last batch of the pass that was due is as the first of the first pass; what follows tells."""
    whole = loaded([[[1, 5], [2, 3], [4, 0]], [[3, 4], [0, 2], [1, 5]]])
    other = loaded([[[1, 5], [2, 3], [4, 0]]])

    assert named(whole, other, 3).startswith("the batch is that of step 0 again (batch 0 of pass 0)")


def test_a_batch_that_is_left_out():
    """What follows it is what follows in the whole run."""
    whole = loaded([[[0], [1], [2], [3], [4]]])
    other = loaded([[[2], [3], [4]]])

    assert named(whole, other, 1).startswith("the batch is that of step 2 (batch 2 of pass 0)")
