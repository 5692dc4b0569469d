"""Each code of the closed list of evidence has a sentence, made of its arguments."""

from __future__ import annotations

import pytest
from sentence_support import text_reason

from samebits._runtime.frames import Site
from samebits.comparison.environments import FactDifference
from samebits.comparison.evidence import Evidence, EvidenceCode
from samebits.comparison.results import Confirmation
from samebits.records.events import TensorInfo
from samebits.records.kinds import Role
from samebits.report.evidence import _SENTENCES, confirmation, sentence

SITE = Site("/code/train.py", 3, "main")
CALL = "aten::mm.default", SITE, "net.fc"
SEEDED = Evidence.of(EvidenceCode.SEEDED_ALIKE, "torch.manual_seed(0)", SITE)
CODE = EvidenceCode
MOVED = (
    "it was used at step 2; both runs gave it the same seed, last by torch.manual_seed(0) at "
    "/code/train.py:3; after that, the runs drew different amounts from it, or its state was replaced"
)
# The arguments of each code, and how the sentence ends.
CASES: dict[EvidenceCode, tuple[tuple[object, ...], str]] = {
    CODE.THREADS_WROTE: (("", "T1"), "the same memory: T1, the main thread"),
    CODE.OUTPUT_DIFFERED: ((), "the output was not"),
    CODE.OTHER_NUMBER_OF_TENSORS: ((1, 2), "it got 1 tensors in the first run, 2 in the second"),
    CODE.OTHER_ARGUMENTS: (("{}", "{0}"), "were ({}) in the first run and ({0}) in the second"),
    CODE.OTHER_THREAD: (("", "T1"), "in the main thread in the first run, in T1 in the second"),
    CODE.FROM_OUTSIDE: (("input 1", "f32[4]"), "a file or another process"),
    CODE.NOT_RECORDED_BEFORE: ((4,), "before step 4 were not recorded"),
    CODE.OTHER_BATCH: ((SITE,), "the loader at /code/train.py:3 gave different contents in each run"),
    CODE.MEMORY_AS_IT_WAS: (("aten::empty", CALL), "read by aten::mm.default at /code/train.py:3 in net.fc"),
    CODE.OTHER_ORDER: (("aten::add", SITE, True), "order in one thread: aten::add at /code/train.py:3"),
    CODE.THREADS_TOOK_PART: (("T2", "T1"), "took part: T1, T2"),
    CODE.READ_BY: ((CALL,), "read by aten::mm.default at /code/train.py:3 in net.fc"),
    CODE.OTHER_MAKERS: ((CALL, None), "in net.fc and no recorded operation"),
    CODE.OTHER_OUTPUT: ((CALL,), "in net.fc in each run"),
    CODE.SUCH_EVENTS: ((3,), "3 such events are origins"),
    CODE.SHAPES_DIFFER: ((SITE, ("f32[3]",), ("f32[4]", "i64[]")), ":3: f32[3] and f32[4], i64[]"),
    CODE.RUNS_DIVERGED: ((), "the runs did different things"),
    CODE.WENT_ON: (("second", None), "the second run did nothing more in this step"),
    CODE.SOURCE_NOT_RECORDED: ((), "show where its contents came from"),
    CODE.TOO_LONG_TO_ALIGN: ((), "it is not known where the runs diverge"),
    CODE.NOT_IN_STEP: ((), "the record is damaged"),
    CODE.ONE_SIDED_TENSOR: (
        ("first", Role.PARAM, "w", TensorInfo(Role.PARAM, "w", "float32", (4,))),
        "only the first run has parameter w (f32[4])",
    ),
    CODE.STEPS_DIFFER: ((1,), "it differs in 1 step"),
    CODE.ALREADY_DIFFERED: (("batch", 2), "batches already differed at step 2"),
    CODE.GENERATOR_STATE: (
        ("python", 1, 2, SEEDED, True),
        MOVED,
    ),
    CODE.NEVER_SEEDED: ((), "it was never seeded"),
    CODE.NOT_SEEDED_LATER: ((), "after recording began"),
    CODE.SEEDED_ALIKE: (("f(1)", SITE), "last by f(1) at /code/train.py:3"),
    CODE.SEEDED_BY_ONE: (("f(1)", SITE), "by f(1) at /code/train.py:3"),
    CODE.SEEDED_OTHER_TIMES: ((1, 2), "seeded it 1 times, the other run 2 times"),
    CODE.SEEDED_DIFFERENTLY: (("f(1)", "f(2)", None), "f(1) and f(2) at an unknown line"),
    CODE.GIVEN_GENERATOR: ((), "a different state in each run"),
    CODE.GENERATOR_PUT_BACK: (("cuda:0",), "or the state was restored"),
    CODE.GENERATOR_BEFORE: (("torch", "aten::randn", SEEDED), "by torch.manual_seed(0) at /code/train.py:3"),
    CODE.MOVED_UNSEEN: (("aten::randn", SITE), "moved it after aten::randn at /code/train.py:3"),
    CODE.DREW_ELSEWHERE: ((SITE, "x", None, "y"), "/code/train.py:3 (x), the second at an unknown line (y)"),
    CODE.DREW_OTHER_AMOUNT: (("x", SITE), "drew a different amount of numbers in each run"),
    CODE.GENERATOR_DIFFERED: (
        ("x", SITE, "torch"),
        "workers from torch's generator in a different state in each run",
    ),
    CODE.SEED_FROM_ENTROPY: (
        ("random.seed", SITE),
        "random.seed at /code/train.py:3 from the operating system's entropy",
    ),
    CODE.MEMORY_UNWRITTEN: (("x", SITE), "with different contents in each run"),
    CODE.ORDER_GIVEN: (("x", SITE), "x at /code/train.py:3 gave a different order in each run"),
    CODE.VALUE_GIVEN: (("x", SITE, True, ("1", "2")), "was given different values in the two runs: 1 and 2"),
    CODE.OTHER_SOURCES: ((3,), "3 other sources also gave different values"),
    CODE.THREAD_NUMBERS: ((1, 4), "with 1 threads for an op, the second with 4"),
    CODE.OTHER_SETTINGS: (
        (FactDifference(("torch", "version"), "2.13.0", "2.15.0"), 1),
        "differs: torch version: 2.13.0 and 2.15.0, and 1 more",
    ),
    CODE.ENTERED: ((SITE, "x"), "it entered at /code/train.py:3 (x)"),
    CODE.LEFT_BY_RUN_BEFORE: (("a.pt", SITE), "a.pt, read at /code/train.py:3"),
    CODE.NOT_REPEATED: ((3, 12, 4, SITE), "3 of 12 repetitions, called 4 times at /code/train.py:3"),
    CODE.ONLY_GENERATOR: ((), "left its generator in another state"),
    CODE.NOT_OF_TORCH: ((), "its inputs and the known generators"),
    CODE.REPEAT_MORE: ((), "show how often it differs"),
    CODE.FIRST_DRAW: (("x", SITE), "the first draw after it: x at /code/train.py:3"),
    CODE.SEEN_ONCE_PLACED: ((SITE, "x"), "in place of run 2's at /code/train.py:3 (x)"),
    CODE.INTERVENTIONS_WITHOUT_TRACE: (
        (Confirmation(("clock",), 3, 3),),
        "the cause is still open",
    ),
    CODE.INTERVENTIONS_DID_NOT_HELP: (
        (("clock",), "time.time"),
        "time.time is not the reason, or not the only one",
    ),
    CODE.RANKS_DIFFER: ((text_reason("w: rank 1 diverges from rank 0 at step 2"),), "from rank 0 at step 2"),
    CODE.DIFFERENT_BEFORE_FIRST_STEP: ((), "differently after the wrapping"),
    CODE.NO_GRADIENT: ((), "in that step"),
    CODE.GRADIENTS_EQUAL: ((), "a step that one rank left out)"),
    CODE.GRADIENTS_DIFFER: ((), "a change after the averaging)"),
}


@pytest.mark.parametrize("code", EvidenceCode)
def test_each_code_has_a_sentence(code: EvidenceCode) -> None:
    arguments, end = CASES[code]
    assert sentence(Evidence(code, arguments)).endswith(end)


def test_no_sentence_is_left_over() -> None:
    """A code that is taken away takes its sentence with it."""
    assert set(_SENTENCES) == set(EvidenceCode)


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        (None, ""),
        (Confirmation(("clock",), 1, 1), "with the clock frozen, 1 pair of runs was identical"),
        (
            Confirmation(("clock", "hash-seed"), 2, 3, steps=7),
            (
                "with the clock frozen and with the hash seed fixed, "
                "2 of 3 pairs of runs were identical in their first 7 steps"
            ),
        ),
        (
            Confirmation(("clock",), 1, 1, steps=7),
            "with the clock frozen, 1 pair of runs was identical in its first 7 steps",
        ),
        (
            Confirmation((), 1, 1, steps=2),
            "with the change below, 1 pair of runs was identical in the first 2 steps",
        ),
    ],
)
def test_a_confirmation_in_words(shown: Confirmation | None, text: str) -> None:
    assert confirmation(shown) == text
