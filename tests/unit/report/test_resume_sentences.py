"""Each fact of a resume check in English."""

from __future__ import annotations

import pytest

from samebits.commands.resume_facts import Fact, FactCode, Position
from samebits.recording.naming import LOADER_GENERATOR
from samebits.records.kinds import Role
from samebits.report.resume_sentences import generators, sentence

LATE = Fact.of(FactCode.STATE_LATE, 2)
COUNTER = Fact.of(FactCode.VALUE_AT_START, "step", "0", "8")
EARLIER, DUE, LATER = Position(4, 0, 1), Position(5, 1, 1), Position(6, 2, 1)
SAID = {
    FactCode.BATCH: ((), "the batch of the DataLoader"),
    FactCode.LOSS: ((), "the loss"),
    FactCode.VALUE_READ: (("aten::item",), "a value read (aten::item)"),
    FactCode.VALUE_SAVED: (("torch.save", ("a", "b")), "a saved value (torch.save): a, b"),
    FactCode.TENSOR: ((Role.PARAM, "0.weight", 2, False), "parameter 0.weight and 2 more"),
    FactCode.NUMBER_OF_STEPS: ((3, 6), "it made 3 steps, where the whole run had 6 left"),
    FactCode.FIRST_PARAMETERS: ((), "the parameters before the first step"),
    FactCode.PARAMETERS_DIFFER: (
        (("a", "b"), 6, 8, True),
        "2 of 6 parameters differ from those before step 8: a, b (as at the start)",
    ),
    FactCode.PARAMETERS_OF_NO_STEP: (
        (),
        ("before its first step, the resumed run's parameters match no step of the whole run: they are not "
        "restored, or not exactly"),
    ),
    FactCode.BUFFERS_DIFFER: (
        (("a", "b", "c", "d", "e"), 7, 8, False),
        "5 of 7 buffers differ from those before step 8: a, b, c and 2 more",
    ),
    FactCode.OPTIMIZER_EMPTY: (
        (("a.exp_avg", "a.step"),),
        "the optimizer's state is not restored: it has none, where a.exp_avg, a.step were",
    ),
    FactCode.OPTIMIZER_DIFFERS: (
        (("a", "b", "c", "d"), 12),
        "4 of 12 values of the optimizer's state are not restored: a, b, c and 1 more",
    ),
    FactCode.SETTINGS_DIFFER: (
        (("StepLR last_epoch", "0", "8"), ("StepLR gamma", "0.5", "0.1")),
        "StepLR last_epoch is 0, not 8; StepLR gamma is 0.5, not 0.1",
    ),
    FactCode.GENERATORS: (
        (("torch", "numpy"), LATE),
        ("torch's CPU generator, NumPy's global generator: as at the end of step 2, but the whole run had "
        "drawn since: it was restored too late (after the batch was drawn), or those draws are missing"),
    ),
    FactCode.STATE_LATE: (
        (0,),
        ("as at the end of step 0, but the whole run had drawn since: it was restored too late (after the "
        "batch was drawn), or those draws are missing"),
    ),
    FactCode.STATE_AT_START: ((), "not restored: as at the start of the script"),
    FactCode.STATE_BEFORE_STEP: ((3,), "not restored: as before step 3"),
    FactCode.STATE_OF_NO_STEP: (
        (), "not restored, or drawn from since: its state matches no step of the whole run",
    ),
    FactCode.VARIABLES: (
        (("step", COUNTER, 0), ("ema", Fact.of(FactCode.OTHER_CONTENTS, "tensor", "ema['w']", None), 3)),
        "`step` is 0 as at the start, not 8; tensor `ema['w']` has other contents (and 3 more in `ema`)",
    ),
    FactCode.VALUE_AT_START: (("n", "1", "5"), "`n` is 1 as at the start, not 5"),
    FactCode.OTHER_CONTENTS: (
        ("generator", "noise", 0), "generator `noise` has other contents: it is as before step 0",
    ),
    FactCode.BATCH_REPEATED: (
        (EARLIER, DUE, False),
        "the batch is that of step 4 again (batch 0 of pass 1), where batch 1 of pass 1 was due",
    ),
    FactCode.BATCHES_SKIPPED: (
        (LATER, DUE, False), "the batch is that of step 6 (batch 2 of pass 1): batch 1 of pass 1 is left out",
    ),
    FactCode.BATCH_MOVED: (
        (Position(5, 2, 1), DUE, False), "the batch is batch 2 of pass 1, where batch 1 of pass 1 was due",
    ),
    FactCode.SAMPLES_CHANGED: (
        ((1, 2, 3, 4, 5),),
        ("the samples are those that were due (1, 2, 3, 4, ...), but their contents differ: the data set or "
        "its transforms draw different values"),
    ),
    FactCode.TENSORS_CHANGED: (
        (("labels",), ("x", "y")),
        ("in the batch, tensor labels is as due and tensor x, tensor y is not: these are the same samples "
        "with other contents, so the data set or its transforms draw different values"),
    ),
    FactCode.OTHER_SAMPLES: (
        ((1, 2), (3, 4), DUE),
        "the order is different: samples 1, 2 came where 3, 4 were due (batch 1 of pass 1)",
    ),
    FactCode.BATCH_UNKNOWN: (
        (DUE,), "the whole run had no such batch (batch 1 of pass 1 was due): samples or contents differ",
    ),
    FactCode.BACKWARD_LOST: (
        (1, 2),
        ("the first step was made from 1 backward pass, where the whole run made 2: the gradients "
        "accumulated before the kill are lost"),
    ),
    FactCode.POSITION_SAVED_EARLY: (
        (), "as if the position was saved before the step and the parameters after it",
    ),
    FactCode.POSITION_SAVED_LATE: (
        (), "as if the parameters were saved before `Optimizer.step` and the position after it",
    ),
    FactCode.WORKERS_REPEAT: (
        (1,),
        ("drawn in 1 worker process, which started again from the same seeds: the draws for earlier samples "
        "were not repeated"),
    ),
    FactCode.WORKERS_SEEDED: ((), "the workers' seeds come from there"),
    FactCode.ITERATOR_GENERATOR: (
        (LOADER_GENERATOR,),
        ("when the loader's iterator was made, the loader's own generator had another state than at the "
        "start of that pass in the whole run"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("code", FactCode)
def test_each_fact_is_said(code):
    """From its arguments, word for word."""
    arguments, words = SAID[code]

    assert sentence(Fact.of(code, *arguments)) == words


VARIANTS = [
    (FactCode.VALUE_SAVED, ("torch.save", ()), "a saved value (torch.save)"),
    (
        FactCode.VALUE_SAVED,
        ("torch.save", ("a", "b", "c", "d")),
        "a saved value (torch.save): a, b, c and 1 more",
    ),
    (FactCode.TENSOR, (Role.GRAD, "w", 0, True), "gradient w (the resumed run has none)"),
    (FactCode.TENSOR, (Role.OPTIMIZER, "w.step", 0, False), "optimizer state w.step"),
    (FactCode.TENSOR, (Role.BUFFER, "mean", 1, True), "buffer mean and 1 more (the resumed run has none)"),
    (
        FactCode.SETTINGS_DIFFER,
        tuple((name, "1", "2") for name in "abcde"),
        "a is 1, not 2; b is 1, not 2; c is 1, not 2; and 2 more",
    ),
    (
        FactCode.VARIABLES,
        tuple((name, Fact.of(FactCode.VALUE_AT_START, name, "0", "1"), 0) for name in "abcdef"),
        (
            "`a` is 0 as at the start, not 1; `b` is 0 as at the start, not 1; `c` is 0 as at the start, not "
            "1; `d` is 0 as at the start, not 1; and 2 more"
        ),
    ),
    (FactCode.OTHER_CONTENTS, ("array", "memory", None), "array `memory` has other contents"),
    (
        FactCode.BATCH_REPEATED,
        (Position(2), Position(5), True),
        (
            "the batch is that of step 2 again (the one of step 2), where the one of step 5 was due, with "
            "other contents (augmentation)"
        ),
    ),
    (
        FactCode.BATCHES_SKIPPED,
        (Position(7, 3, 1), DUE, True),
        (
            "the batch is that of step 7 (batch 3 of pass 1): batch 1 of pass 1 and those up to there are "
            "left out, with other contents (augmentation)"
        ),
    ),
    (
        FactCode.BATCH_MOVED,
        (Position(5), DUE, True),
        "the batch is the one of step 5, where batch 1 of pass 1 was due, with other contents (augmentation)",
    ),
    (
        FactCode.BACKWARD_LOST,
        (2, 4),
        (
            "the first step was made from 2 backward passes, where the whole run made 4: the gradients "
            "accumulated before the kill are lost"
        ),
    ),
    (
        FactCode.WORKERS_REPEAT,
        (2,),
        (
            "drawn in 2 worker processes, which started again from the same seeds: the draws for earlier "
            "samples were not repeated"
        ),
    ),
]


@pytest.mark.parametrize(("code", "arguments", "words"), VARIANTS)
def test_forms_of_a_sentence(code, arguments, words):
    """One or several, more than are shown, and what is not known."""
    assert sentence(Fact.of(code, *arguments)) == words


def test_generators_in_words():
    """A name that is none of the global ones is that of a device."""
    assert generators(("opencv",)) == "OpenCV's generator"
    assert generators(("torch", "python", "numpy", LOADER_GENERATOR, "cuda:0")) == (
        "torch's CPU generator, Python's `random`, NumPy's global generator, the loader's own generator, "
        "torch's generator of cuda:0"
    )
