"""Each code of the closed list has a sentence, made of its arguments."""

from __future__ import annotations

import pytest
from sentence_support import text_reason

from samebits._runtime.frames import Site
from samebits.comparison.environments import FactDifference
from samebits.comparison.evidence import Evidence, EvidenceCode
from samebits.comparison.results import Confirmation
from samebits.records.notes import STORED_ARGUMENTS, Note, NoteCode, RecordedPart, listed
from samebits.report.notes import _PARTS, _SENTENCES, fact_difference, sentence
from samebits.verification.results import Stress

SITE = Site("/code/train.py", 3, "main")
ENVIRONMENT = FactDifference(("variables",), "1", None, "PYTHONHASHSEED")
# A note of each code whose arguments are not just numbers or names.
ARGUMENTS: dict[NoteCode, tuple[object, ...]] = {
    NoteCode.OPS_TAKE_TOO_LONG: ("--samebits-budget",),
    NoteCode.UNFIT: (text_reason("the first run failed"),),
    NoteCode.INTERVENTIONS: ("hash-seed", "clock"),
    NoteCode.NOT_RECORDED: ("step", "ZeroDivisionError", ""),
    NoteCode.NOT_PLACED: ("1", "2", "aten::mm.default", "train.py:3", "both"),
    NoteCode.COMPILE_OFF: ("record",),
    NoteCode.COMPILED_ATOMICS: ("triton_tem_fused_flex_attention_backward_1", "cpp_fused_index_put_0"),
    NoteCode.ONE_SIDED_VALUES: ("read", "item", ("train.py", 3), 1, 2),
    NoteCode.ENVIRONMENT: (ENVIRONMENT,),
    NoteCode.GENERATOR_DIFFERED: (Evidence.of(EvidenceCode.NEVER_SEEDED),),
    NoteCode.LATE_VALUE: (SITE,),
    NoteCode.RANK_STEPS: ((2, (1,)), (3, (0, 2))),
    NoteCode.SAME_SAMPLES: (SITE, 4),
    NoteCode.SAMPLES_LEFT_OUT: (SITE, 1, 7),
    NoteCode.SAMPLES_ON_NO_RANK: (SITE, 0, 1, 7),
    NoteCode.SAMPLES_PADDED: (SITE, 1, 7),
    NoteCode.SAMPLES_REPEATED: (SITE, 2),
    NoteCode.EPOCH_NOT_SET: (SITE,),
    NoteCode.SAME_WORKER_SEEDS: (SITE, 0, 1),
    NoteCode.OUT_OF_TIME: (90.0,),
    NoteCode.STRESS: (1, Stress(1, 17, 1, 0x55, fixed_layout=True)),
    NoteCode.READ_EARLIER_FILES: (2, (("a.pt", SITE),), 1, text_reason("the state differs at step 0")),
    NoteCode.INTERVENTIONS_IN_DOUBT: (Confirmation(("clock",), 1, 1), "chance"),
    NoteCode.CHILDREN_DIFFER_TOO: (("train-1", 3), ("train-2", None)),
    NoteCode.REPLAY_DIFFERED: (True, text_reason("the state differs at step 0")),
    NoteCode.TWO_PROCESSORS: (("one", "a"), ("other", "b"), 2),
    NoteCode.WHOLE_RUN: (Note.of(NoteCode.INTERRUPTED),),
}


@pytest.mark.parametrize("code", NoteCode)
def test_each_code_has_a_sentence(code: NoteCode) -> None:
    form = _SENTENCES[code]
    number = form.count("{") if isinstance(form, str) else (STORED_ARGUMENTS.get(code) or 2)
    text = sentence(Note(code, ARGUMENTS.get(code, tuple(map(str, range(1, number + 1))))))
    assert text
    assert "{" not in text
    assert "NoteCode" not in text
    for argument in ARGUMENTS.get(code, ()) if code is not NoteCode.COMPILE_OFF else ():
        assert not isinstance(argument, int) or isinstance(argument, bool) or str(argument) in text


def test_no_sentence_is_left_over() -> None:
    """A code that is taken away takes its sentence with it."""
    assert set(_SENTENCES) == set(NoteCode)
    assert set(_PARTS) == set(RecordedPart)


def test_stress_names_what_it_changed() -> None:
    whole = Stress(3, 1128, 3, 0x0F, fixed_layout=True)
    least = Stress(None, 17, 1, None, fixed_layout=False)
    assert sentence(Note.of(NoteCode.STRESS, 3, whole)) == (
        "stress in run 3: PYTHONHASHSEED=3, environment padding 1128 bytes, scheduling noise 3, "
        "memory fill 0x0F, fixed addresses"
    )
    assert sentence(Note.of(NoteCode.STRESS, 1, least)) == (
        "stress in run 1: environment padding 17 bytes, scheduling noise 1, default addresses"
    )


def test_the_value_of_a_variable_that_is_missing_is_told_apart() -> None:
    assert fact_difference(ENVIRONMENT) == "environment variable PYTHONHASHSEED: 1 and not set"
    gpus = FactDifference(("torch", "gpus"), "", "H200", is_list=True)
    assert fact_difference(gpus) == "GPUs: only the second has H200"
    assert fact_difference(FactDifference(("torch", "gpus"), "", "", is_list=True)).endswith(
        ": in another order"
    )
    cublas = FactDifference(("libraries",), None, "libcublas.so.13", "cublas")
    assert fact_difference(cublas) == "loaded library cuBLAS: not loaded and libcublas.so.13"


def test_a_record_of_a_newer_samebits_may_name_an_intervention_or_a_part_that_is_not_known() -> None:
    assert sentence(Note.of(NoteCode.INTERVENTIONS, "tides")) == "made with the pin tides"
    lost = sentence(Note.of(NoteCode.NOT_RECORDED, "tides", "OSError", ""))
    assert lost == "recording of tides failed and left something out (OSError)"


def test_the_name_of_a_tap_is_set_off() -> None:
    """It may be any word."""
    lost = sentence(Note.of(NoteCode.NOT_RECORDED, "tap", "TypeError: it is None", "none"))
    assert lost == "recording of a tap `none` failed and left something out (TypeError: it is None)"
    unnamed = sentence(Note.of(NoteCode.NOT_RECORDED, "tap", "OSError", ""))
    assert unnamed.startswith("recording of a tap failed")


def test_notes_of_two_records_are_listed_in_one_order() -> None:
    """Whatever the order in which the records have them."""
    step = Note.of(NoteCode.NOT_RECORDED, "step", "OSError", "")
    batch = Note.of(NoteCode.NOT_RECORDED, "batch", "OSError", "")
    compiled, tensors = Note.of(NoteCode.COMPILED, "1"), Note.of(NoteCode.UNREADABLE_TENSORS, "2")
    assert listed([compiled, step, tensors, batch, step]) == [tensors, batch, step, compiled]
