"""What the draw log adds to a finding: lines, and the cause and the line where that is clear."""

from __future__ import annotations

from dataclasses import replace

import pytest
from event_tape import Tape
from sentence_support import evidence_of

from samebits.comparison import find_origins, judge
from samebits.comparison.lookup import EventCache
from samebits.records.events import DRAWN, UNUSED, Link

CAUSES = {
    "time.time": "wall-clock",
    "datetime.datetime.now": "wall-clock",
    "os.getpid": "environment",
    "os.listdir": "environment",
    "uuid.uuid4": "os-entropy",
    "random.SystemRandom.random": "os-entropy",
    "random.Random": "unseeded-python",
    "random.random": "unseeded-python",
    "numpy.random.SeedSequence": "unseeded-numpy",
    "numpy.random.rand": "unseeded-numpy",
    "torch.Generator.seed": "unseeded-torch",
    "concurrent.futures.as_completed": "race",
}


def draw(tape, op, value, line, text=""):
    """A draw as the recorder writes it; unlike tensors it has no link."""
    seq = tape.add("draw", op, [(DRAWN, value, Link(0, -1))], line, arguments=text)
    tape.log[seq] = replace(tape.log[seq], links=())


def make(value, *, draws=(), between=False, early=(), seed=None):
    """A run of two steps whose second takes a value from outside, at line 10."""
    tape = Tape()
    weight = tape.outside("w")
    for source, drawn, line in early:
        draw(tape, source, drawn, line)
    weight = tape.op("mul", weight, line=4)
    tape.boundary({"w": weight})
    if seed is not None:
        tape.seed(seed, 6, "numpy.random.seed")
    for source, drawn, line in draws:
        draw(tape, source, drawn, line, f"text {drawn}")
    if between:
        tape.op("relu", tape.outside("same"), line=9)
    tape.add_(weight, tape.outside(value), line=10)
    tape.boundary({"w": weight})
    return tape.record()


def origin(a, b):
    """The one origin of two runs."""
    (found,) = find_origins(a, b).findings
    return found


@pytest.mark.parametrize("source", CAUSES)
def test_a_draw_right_before_the_origin_is_its_cause(source):
    """The finding has the cause and the line of the draw, and says where the value entered."""
    found = origin(*(make(value, draws=[(source, value, 8)]) for value in (1, 2)))
    assert (found.cause, found.origin.site.line) == (CAUSES[source], 8)
    assert any("train.py:8" in line for line in evidence_of(found))
    assert any("entered at" in line and "train.py:10" in line for line in evidence_of(found))


def test_values_are_shown():
    """The line of evidence shows both values."""
    found = origin(*(make(value, draws=[("time.time", value, 8)]) for value in (1, 2)))
    assert any(
        line.endswith("gave different values in the two runs: text 1 and text 2")
        for line in evidence_of(found)
    )


def test_equal_draws_say_nothing():
    """A draw with the same value is no evidence."""
    found = origin(*(make(value, draws=[("time.time", 0, 8)]) for value in (1, 2)))
    assert (found.cause, found.origin.site.line) == ("unknown", 10)
    assert not any("time.time" in line for line in evidence_of(found))


def test_a_clock_with_an_operation_in_between_is_evidence_only():
    """Most clocks are read for logs: far from the origin they are shown, not blamed."""
    found = origin(*(make(value, draws=[("time.time", value, 8)], between=True) for value in (1, 2)))
    assert (found.cause, found.origin.site.line) == ("unknown", 10)
    assert any("time.time" in line for line in evidence_of(found))


def test_a_clock_on_the_line_of_the_origin_is_its_cause():
    """Whatever operations that line has."""
    found = origin(*(make(value, draws=[("time.time", value, 10)], between=True) for value in (1, 2)))
    assert (found.cause, found.origin.site.line) == ("wall-clock", 10)


def test_a_generator_without_a_seed_is_blamed_from_afar():
    """It was made in an earlier step, with operations in between."""
    early = "numpy.random.SeedSequence"
    found = origin(*(make(value, early=[(early, value, 2)], between=True) for value in (1, 2)))
    assert (found.cause, found.origin.site.line) == ("unseeded-numpy", 2)


def test_what_differed_in_equal_steps_is_harmless():
    """A clock that was read at the same line in a step that was identical is not even evidence."""
    clock = ("time.time", 8)
    pair = [
        make(value, early=[(clock[0], value, clock[1])], draws=[(clock[0], value, clock[1])])
        for value in (1, 2)
    ]
    found = origin(*pair)
    assert found.cause == "unknown"
    assert not any("time.time" in line for line in evidence_of(found))


def test_two_causes_are_left_open():
    """Both are shown."""
    draws = ("time.time", 7), ("os.getpid", 8)
    found = origin(*(make(v, draws=[(op, v, line) for op, line in draws]) for v in (1, 2)))
    assert (found.cause, found.origin.site.line) == ("unknown", 10)
    assert sum("gave different values" in line for line in evidence_of(found)) == 2


def test_what_seeds_a_generator_outranks_what_else_was_drawn_there():
    """A run folder is named by a uuid on the same line of a library as a generator is made without a seed."""
    draws = ("uuid.uuid4", "{}", 10), ("numpy.random.SeedSequence", "{}", 10)
    a, b = (make(v, draws=[(op, v, line) for op, _, line in draws]) for v in (1, 2))
    assert origin(a, b).cause == "unseeded-numpy"


def test_unwritten_memory_is_named_and_blamed_by_no_draw_alone():
    """Arrays that are filled later hold other things in each run as well."""
    draws = ("numpy.empty", 8), ("time.time", 10)
    a, b = (make(v, draws=[(op, v, line) for op, line in draws]) for v in (1, 2))
    found = origin(a, b)
    assert found.cause == "wall-clock"
    assert [source.cause for source in found.origin.sources] == ["wall-clock", "uninitialized"]
    assert "memory that nothing had written" in evidence_of(found)[-1]
    a, b = (make(v, draws=[("numpy.empty", v, 10)]) for v in (1, 2))
    assert origin(a, b).cause == "unknown"


def test_a_seeded_generator_is_not_unseeded():
    """Both runs gave it the same seed: that its state differs has another reason."""
    found = origin(*(make(v, draws=[("numpy.random.rand", v, 8)], seed=3) for v in (1, 2)))
    assert found.cause == "unknown"


def test_a_seed_from_a_clock_is_the_clocks_doing():
    """The generator was seeded differently, and a clock was read right before."""

    def run(value):
        tape = Tape()
        draw(tape, "time.time", value, 5)
        tape.seed(value, 6, "numpy.random.seed")
        weight = tape.op("relu", tape.outside("w"), line=7)
        draw(tape, "numpy.random.rand", value, 8)
        tape.add_(weight, tape.outside(value), line=10)
        tape.boundary({"w": weight})
        return tape.record()

    found = origin(run(1), run(2))
    assert (found.cause, found.origin.site.line) == ("wall-clock", 5)
    assert any(
        "seeded differently: numpy.random.seed(1) and numpy.random.seed(2)" in x for x in evidence_of(found)
    )


def test_a_torch_seed_from_the_process_id():
    """A seeding of torch is a finding of its own; what it came from is the cause."""

    def run(value):
        tape = Tape()
        draw(tape, "os.getpid", value, 5)
        tape.seed(value, 6)
        tape.boundary({"w": tape.randn(7)})
        return tape.record()

    found = origin(run(1), run(2))
    assert (found.origin.kind, found.cause, found.origin.site.line) == ("rng", "environment", 5)


def test_a_seed_that_torch_chose_itself_owes_nothing_to_what_was_drawn_before():
    def run(value):
        tape = Tape()
        draw(tape, "uuid.uuid4", value, 5)
        tape.seed(f") -> {value}", 6, "torch.seed")
        tape.boundary({"w": tape.randn(7)})
        return tape.record()

    found = origin(run(1), run(2))
    assert (found.origin.kind, found.cause, found.origin.site.line) == ("rng", "unseeded-torch", 6)


def test_draws_alone_are_no_difference():
    """Neither other values nor more of them."""
    extra = [("time.time", 5, 8)] * 3
    a, b = make(1, draws=[("time.time", 1, 8)]), make(1, draws=[("time.time", 2, 8), *extra])
    assert judge(a, b).verdict == "identical"
    assert not judge(a, b).notes


def test_the_draws_that_are_named_are_there_as_values():
    """Op, line and cause of each, those that can have mattered first."""
    found = origin(make(1, draws=[("os.getpid", 1, 8)]), make(2, draws=[("os.getpid", 2, 8)]))
    assert [(s.op, s.site.line, s.cause) for s in found.origin.sources] == [("os.getpid", 8, "environment")]


QUEUE = "multiprocessing.Queue.get"


def test_another_order_of_what_comes_out_of_a_queue_is_a_race():
    first, second = [(QUEUE, item, 8) for item in "abc"], [(QUEUE, item, 8) for item in "bac"]
    found = origin(make(1, draws=first), make(2, draws=second))
    assert (found.cause, found.origin.site.line) == ("race", 8)


def test_other_things_in_a_queue_are_none():
    """Their contents are what differs, not their order."""
    first, second = [(QUEUE, item, 8) for item in "abc"], [(QUEUE, item, 8) for item in "axc"]
    found = origin(make(1, draws=first), make(2, draws=second))
    assert (found.cause, found.origin.sources) == ("unknown", ())


def test_draws_do_not_shift_the_alignment():
    """One run reads a clock more often: the origin is the same."""
    extra = [("time.time", n, 8) for n in range(30)]
    found = origin(make(1, draws=extra), make(2, draws=extra[:2]))
    assert (found.origin.op, found.origin.origin_kind, found.origin.site.line) == (
        "aten::add_.Tensor",
        "outside",
        10,
    )


def test_entropy_that_was_not_used_is_no_evidence():
    """`RandomState(3)`: both runs took entropy at line 8, and a seed replaced it."""

    def run(value):
        tape = Tape()
        draw(tape, "numpy.random.SeedSequence", value, 8)
        draw(tape, "numpy.random.SeedSequence", UNUSED, 8, UNUSED)
        weight = tape.add_(tape.outside("w"), tape.outside(value), line=10)
        tape.boundary({"w": weight})
        return tape.record()

    found = origin(run(1), run(2))
    assert (found.cause, found.origin.site.line) == ("unknown", 10)
    assert not any("SeedSequence" in line or "seeded at" in line for line in evidence_of(found))


def kernel(value, *, threads=None, environment=None):
    """A run whose op at line 10 gives another value for equal inputs."""
    tape = Tape()
    if threads is not None:
        draw(tape, "torch.set_num_threads", threads, 3, str(threads))
    weight = tape.op("relu", tape.outside("w"), line=4)
    tape.boundary({"w": tape.op("sum", weight, line=10, noise=value)})
    return tape.record(environment=environment or {})


def test_another_number_of_threads_explains_a_kernel():
    """The line is the one that set it."""
    found = origin(kernel(1, threads=2), kernel(2, threads=3))
    assert (found.cause, found.origin.site.line, found.origin.entered_site.line) == ("thread-count", 3, 10)
    assert any("was given different values in the two runs: 2 and 3" in line for line in evidence_of(found))


def test_threads_at_the_end_of_two_runs_explain_a_kernel():
    """Nothing in the script set them: the environment did."""
    facts = [{"torch": {"threads": {"intra-op": count}}} for count in (1, 4)]
    found = origin(kernel(1, environment=facts[0]), kernel(2, environment=facts[1]))
    assert (found.cause, found.origin.site.line) == ("thread-count", 10)
    assert "the first run ended with 1 threads for an op, the second with 4" in evidence_of(found)
    same = origin(kernel(1, environment=facts[0]), kernel(2, environment=facts[0]))
    assert same.cause == "nondeterministic-kernel"


GPUS = [{"name": "NVIDIA H100 80GB HBM3"}]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param({"torch": {"version": "2.13.0"}}, {"torch": {"version": "2.15.0"}}, id="release"),
        pytest.param(
            {"switches": {"deterministic-algorithms": "on"}},
            {"switches": {"deterministic-algorithms": "off"}},
            id="switch",
        ),
        pytest.param(
            {"torch": {"capability": "AVX2"}}, {"torch": {"capability": "AVX512"}}, id="sum-by-aten"
        ),
        pytest.param(
            {"torch": {"gpus": GPUS}, "variables": {}},
            {"torch": {"gpus": GPUS}, "variables": {"NVIDIA_TF32_OVERRIDE": "1"}},
            id="gpu",
        ),
    ],
)
def test_a_setting_that_can_change_an_op_explains_a_kernel(first, second):
    """Equal inputs and other results show no chance where the runs were not given the same settings."""
    found = origin(kernel(1, environment=first), kernel(2, environment=second))
    assert found.cause == "environment"
    assert any("the environment, which differs:" in line for line in evidence_of(found))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param({"python": {"version": "3.11"}}, {"python": {"version": "3.12"}}, id="python"),
        pytest.param({"torch": {"mkl": "2024"}}, {"torch": {"mkl": "2025"}}, id="other-ops"),
        pytest.param({"machine": {"gpu_driver": "1"}}, {"machine": {"gpu_driver": "2"}}, id="possible"),
        pytest.param(
            {"torch": {"gpus": []}, "variables": {}},
            {"torch": {"gpus": []}, "variables": {"NVIDIA_TF32_OVERRIDE": "1"}},
            id="no-gpu",
        ),
    ],
)
def test_a_setting_that_cannot_change_an_op_explains_nothing(first, second):
    """The op is a sum on the CPU."""
    assert (
        origin(kernel(1, environment=first), kernel(2, environment=second)).cause == "nondeterministic-kernel"
    )


def test_sources_of_all_that_one_line_did_are_told():
    """A sampler that was seeded from the clock gave one index, Python's generator the other."""

    def sampled(value):
        tape = Tape()
        weight = tape.outside("w")
        draw(tape, "time.time", value, 3)
        tape.op("relu", tape.outside("same"), line=9)
        for n in range(2):
            picked = tape.op("select", tape.outside("rows"), line=10, arguments=str(value))
            tape.add_(weight, picked, line=12)
            if n == 0:  # the first draw of an instruction in each step
                draw(tape, "random.random", value, 10)
        tape.boundary({"w": weight})
        return tape.record()

    found = origin(sampled(1), sampled(2))
    assert (found.origin.op, found.cause) == ("aten::select", "unknown")
    assert [source.op for source in found.origin.sources] == ["time.time", "random.random"]
    assert any(line.startswith("random.random at ") for line in evidence_of(found))


def test_seedings_are_read_up_to_the_last_step_that_is_examined():
    """A record may go on for long after the runs diverged."""
    tape = Tape()
    for value in range(4):
        tape.seed(value)
        tape.boundary({})
    record = tape.record()
    last = list(record.events())[-1]

    def seeds(last_step):
        return [call.arguments for call in EventCache(record, last_step).seed_log.seeds_before(last, "torch")]

    assert seeds(1) == ["torch.manual_seed(0)", "torch.manual_seed(1)"]
    assert len(seeds(None)) == 4
