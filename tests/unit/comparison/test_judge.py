"""The verdict over two step-level records."""

from __future__ import annotations

from dataclasses import replace

import pytest
from event_tape import Tape
from sentence_support import evidence_of, notes_of, reason_of

from samebits.comparison.verdict import judge
from samebits.recording._guard import Failures
from samebits.records.events import DRAWN, Link
from samebits.records.notes import NoteCode, RecordedPart
from samebits.report.notes import sentence


def train(steps=3, *, level="step", weight="w", before=None, after=None):
    """A run of some steps: batch, loss, gradient, state. `before` and `after` add to a step."""
    tape = Tape(level=level)
    tape.seed(0)
    tape.hard = True
    parameter = tape.outside(weight)
    for step in range(steps):
        (x,) = tape.batch([("batch", step)])
        if before:
            before(tape, step, x)
        loss = tape.outside(("loss", step, parameter.value))
        gradient = tape.outside(("gradient", step, parameter.value))
        tape.backward(loss, {"w": gradient})
        parameter.memory.cells[""] = (parameter.value, step)
        if after:
            after(tape, step, parameter)
        tape.boundary({"w": parameter})
    tape.end({"w": parameter})
    return tape


def test_equal_runs_are_identical():
    result = judge(train().record(), train().record())
    assert (result.verdict, reason_of(result), result.steps, result.findings) == ("identical", None, 3, ())
    assert result.final_digest[0] == result.final_digest[1] != ""
    assert notes_of(result) == ()


def test_different_state_is_different():
    def change(tape, step, parameter):
        if step == 1:
            parameter.memory.cells[""] = "other"

    result = judge(train().record(), train(after=change).record())
    assert result.verdict == "different"
    assert reason_of(result) == ("the state differs at step 1: parameter w (f32[4]); step 0 is identical")
    assert (result.first_step, result.steps) == (1, 3)
    (finding,) = result.findings
    assert (finding.origin.kind, finding.origin.names, finding.origin.outputs, finding.origin.site.line) == (
        "step",
        ("w",),
        ("f32[4]",),
        30,
    )
    assert result.final_digest[0] != result.final_digest[1]


def test_the_first_event_of_the_step_comes_first():
    """A batch that differs in the same step precedes the loss, the gradients and the state."""
    tape = train()
    other = train(weight="v")
    other.log[1] = replace(other.log[1], digests=(b"x" * 16,))
    result = judge(tape.record(), other.record())
    assert [finding.origin.kind for finding in result.step_findings] == ["batch", "loss", "grad", "step"]
    assert result.findings[0].origin.kind == "batch"


def test_a_gradient_is_state():
    def change(tape, step, parameter):
        tape.add("grad", "backward", [tape._shown("grad", tape.outside(object), "w")], 20)

    result = judge(train().record(), train(after=change).record())
    assert result.verdict == "different"
    assert result.findings[0].origin.kind == "grad"


def test_values_of_autograd_grad_are_no_state():
    def penalty(value):
        return lambda tape, step, x: tape.add(
            "grad", "grad", [tape._shown("grad", tape.outside(value), "0")], 9
        )

    assert judge(train(before=penalty(1)).record(), train(before=penalty(2)).record()).verdict == "identical"


def test_a_loss_alone_is_a_note():
    """A loss with a constant that differs reaches neither gradients nor state."""
    tape, other = train(), train()
    at = next(i for i, event in enumerate(other.log) if event.kind == "loss")
    other.log[at] = replace(other.log[at], digests=(b"x" * 16,))
    result = judge(tape.record(), other.record())
    assert result.verdict == "identical"
    assert notes_of(result) == ("the loss differed at step 0, but the state and the outputs did not",)


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (({}, {}), [("torch", "version")]),
        (({"torch": {"version": "2.1"}}, {"torch": {"version": "2.2"}}), [("torch", "version")]),
        (({"torch": {"git": "a"}}, {"torch": {"git": "b"}}), [("torch", "git")]),
        (({"torch": {"mkl": "1"}}, {"torch": {"mkl": "2"}}), [("torch", "version"), ("torch", "mkl")]),
    ],
)
def test_two_versions_of_torch_are_told_once(facts, expected):
    """From the environment, or from the run where that lacks it or has other libraries only."""
    records = train().record(), train().record()
    for record, environment, version in zip(records, facts, ("2.1", "2.2"), strict=True):
        record.info = replace(record.info, environment=environment, torch=version)
    notes = judge(*records).notes

    assert [note.code for note in notes] == [NoteCode.ENVIRONMENT] * len(expected)
    assert [note.arguments[0].path for note in notes] == expected
    assert "torch version: 2.1 and 2.2" in notes_of(judge(*records))[0] or expected == [("torch", "git")]


def test_a_batch_alone_is_a_note():
    tape, other = train(), train()
    other.log[1] = replace(other.log[1], digests=(b"x" * 16,))
    result = judge(tape.record(), other.record())
    assert (result.verdict, notes_of(result)) == (
        "identical",
        ("the batch differed at step 0, but the state and the outputs did not",),
    )


def test_a_generator_alone_is_a_note():
    """An unseeded `random` that names the run must not make runs different."""
    tape, other = Tape(level="step"), Tape(level="step")
    for t, state in ((tape, 1), (other, 2)):
        for step in range(2):
            t.generators["python"] = (state, step)
            t.boundary({"w": t.outside("w")})
    result = judge(tape.record(), other.record())
    assert result.verdict == "identical"
    line = (
        "the state of Python's generator differed at step 0; it was used at step 1; it was never seeded;"
        " nothing that was compared differs"
    )
    assert notes_of(result) == (line,)


def test_a_generator_that_nothing_used_is_not_mentioned():
    """Python and NumPy seed their generators from the operating system in every run."""
    tape, other = Tape(level="step"), Tape(level="step", generators={"python": 1, "numpy": 0})
    for t in (tape, other):
        t.boundary({"w": t.outside("w")})
    assert notes_of(judge(tape.record(), other.record())) == ()


def test_a_generator_used_before_the_first_boundary():
    """The state at the start of a run tells what was drawn before the first boundary."""
    tape, other = Tape(level="step"), Tape(level="step")
    for t, state in ((tape, 1), (other, 2)):
        for draws in range(2):
            t.generators["python"] = (state, draws)
            t._state({}, {}, None, "end")
            t.log.pop()
        t.boundary({"w": t.outside(state)})
    assert "it was used at step 0" in evidence_of(judge(tape.record(), other.record()).findings[0])[0]


def test_generators_are_evidence_of_a_difference():
    tape, other = Tape(level="step"), Tape(level="step")
    for t, value in ((tape, 3), (other, 4)):
        t.seed(value, line=2, call="numpy.random.seed")
        t.boundary({"w": t.outside(value)})
    result = judge(tape.record(), other.record())
    assert evidence_of(result.findings[0]) == (
        (
            "the state of NumPy's generator differed at step 0; it was seeded differently:"
            " numpy.random.seed(3) and numpy.random.seed(4) at /home/u/train.py:2"
        ),
    )
    assert result.findings[0].cause == "unknown"


def test_a_generator_that_is_put_back_was_seeded_alike_only_until_then():
    """A context that seeds and then puts the state back, which nothing had seeded."""
    tape, other = Tape(level="step"), Tape(level="step")
    for t, state in ((tape, 1), (other, 2)):
        for step in range(2):
            t.seed(step, line=2 + step, call="numpy.random.seed")
            t.generators["numpy"] = state
            t.boundary({"w": t.outside("w")})
    line = (
        "the state of NumPy's generator differed at step 0; both runs gave it the same seed, last by"
        " numpy.random.seed(0) at /home/u/train.py:2; after that, the runs drew different amounts from"
        " it, or its state was replaced; nothing that was compared differs"
    )
    assert notes_of(judge(tape.record(), other.record())) == (line,)


def test_a_state_before_a_seed_says_nothing_of_after_it():
    """The script parted in its first step, at whose end no state was recorded."""
    tape, other = Tape(level="step"), Tape(level="step")
    for t, value in ((tape, 3), (other, 4)):
        t.generator = value
        t._state({}, {}, None, "end")
        t.log.pop()
        t.seed(0)
        t.read(t.outside(value), 7)
    assert not any("generator" in line for line in result_lines(tape, other))


def test_a_seed_is_no_use_of_a_generator():
    tape, other = Tape(level="step"), Tape(level="step")
    for t, value in ((tape, 3), (other, 4)):
        t.boundary({"w": t.outside("w")})
        t.seed(value)
        t.boundary({"w": t.outside(value)})
    (line,) = result_lines(tape, other)
    assert line.startswith("the state of torch's generator differed at step 1; it was seeded differently")


def test_a_seed_is_that_of_its_library():
    tape, other = Tape(level="step"), Tape(level="step")
    for t, value in ((tape, 3), (other, 4)):
        t.seed(0)
        t.generators["numpy"] = value
        t.add("draw", "numpy.random.rand", [(DRAWN, value, Link(0, -1))], 4)
        t.boundary({"w": t.outside(value)})
    assert result_lines(tape, other) == (
        "the state of NumPy's generator differed at step 0; it was never seeded",
    )


def test_a_generator_that_was_never_used_is_no_evidence():
    """Python and NumPy seed their own from the operating system in every run."""
    tape, other = Tape(level="step"), Tape(level="step")
    for t, value in ((tape, 3), (other, 4)):
        t.generators |= {"numpy": value, "python": value}
        t.boundary({"w": t.outside("w")})
        t.boundary({"w": t.outside(value)})
    assert result_lines(tape, other) == ()


def result_lines(a, b):
    return evidence_of(judge(a.record(), b.record()).findings[0])


def test_excluded_names_are_left_out_and_noted():
    tape, other = Tape(level="step"), Tape(level="step")
    for t, value in ((tape, 1), (other, 2)):
        t.boundary({"w": t.outside("w")}, {"pad": t.outside(value)})
    assert judge(tape.record(), other.record()).verdict == "different"
    result = judge(tape.record(), other.record(), excluded=("pad",))
    assert result.verdict == "identical"
    assert notes_of(result) == ("left out of the comparison: pad",)
    assert result.final_digest[0] == result.final_digest[1]


def test_a_name_in_one_run_only_is_different():
    tape, other = Tape(level="step"), Tape(level="step")
    tape.boundary({"w": tape.outside(1)})
    other.boundary({"w": other.outside(1)}, {"extra": other.outside(2)})
    result = judge(tape.record(), other.record())
    assert result.verdict == "different"
    assert evidence_of(result.findings[0]) == ("only the second run has buffer extra (f32[4])",)


def test_a_name_in_one_run_only_at_the_end_does_not_count():
    """When memory is freed before the end of a script is no matter of its bits."""
    tape, other = train(), train()
    other.log.pop()
    other.end({"w": Tape().outside(other_last(other))}, {"late": other.outside(2)})
    result = judge(tape.record(), other.record())
    assert result.verdict == "identical"
    assert result.final_digest[0] == result.final_digest[1]


def other_last(tape):
    value = "w"
    for step in range(tape.step):
        value = (value, step)
    return value


def test_state_that_differs_at_the_end_is_different():
    tape, other = train(), train()
    other.log.pop()
    other.end({"w": other.outside("changed after the last step")})
    result = judge(tape.record(), other.record())
    assert result.verdict == "different"
    assert result.findings[0].origin.op == "end"


def reads(values, line=8, **more):
    def add(tape, step, x):
        for value in values.get(step, ()):
            tape.read(tape.outside(value), line, **more)

    return add


def test_an_extra_read_is_a_note():
    """A log line taken by time."""
    result = judge(train().record(), train(before=reads({1: ["norm"]})).record())
    assert result.verdict == "identical"
    counts = "0 only in the first run, 1 only in the second"
    assert notes_of(result) == (f"the read `item` at train.py:8 gave values that differ: {counts}",)


def test_as_many_reads_with_other_values_are_different():
    a, b = train(before=reads({1: ["x", "y"]})), train(before=reads({1: ["x", "z"]}))
    result = judge(a.record(), b.record())
    assert result.verdict == "different"
    assert reason_of(result) == "the training is identical at every step; 1 reported value differs"
    first, second = result.findings[0].origin.events
    assert a.log[first].kind == b.log[second].kind == "read"
    assert a.log[first].digests == (a.log[first].digests[0],) != b.log[second].digests


def test_reads_of_another_number_are_matched_by_value():
    a, b = train(before=reads({1: ["x", "y"]})), train(before=reads({1: ["x", "new", "y"]}))
    assert judge(a.record(), b.record()).verdict == "identical"
    c = train(before=reads({1: ["x", "q", "new"]}))
    assert judge(a.record(), c.record()).verdict == "identical"  # the state decides


def test_reads_of_other_shapes_are_different():
    def read(shape):
        return lambda tape, step, x: tape.read(tape.outside("v", shape), 8, op="tolist")

    a, b = train(before=read((3,))), train(before=read((4,)))
    result = judge(a.record(), b.record())
    assert result.verdict == "different"
    assert "shapes differ at /home/u/train.py:8: f32[3] and f32[4]" in evidence_of(result.findings[0])


def test_reads_of_several_threads_are_compared_without_order():
    def read(order):
        def add(tape, step, x):
            for value in order:
                tape.read(tape.outside(value), 8, thread=f"T{value}")

        return add

    assert judge(train(before=read("12")).record(), train(before=read("21")).record()).verdict == "identical"
    assert judge(train(before=read("12")).record(), train(before=read("13")).record()).verdict == "different"


def test_reads_after_the_last_boundary_count():
    a, b = train(), train()
    a.read(a.outside(1), 50)
    b.read(b.outside(2), 50)
    assert judge(a.record(), b.record()).verdict == "different"


@pytest.mark.parametrize(("values", "verdict"), [((1, 1), "identical"), ((1, 2), "different")])
def test_saves(values, verdict):
    def save(value):
        return lambda tape, step, x: tape.save({"0": tape.outside(value), "1": tape.outside(0)})

    a, b = (train(before=save(value)) for value in values)
    result = judge(a.record(), b.record())
    assert result.verdict == verdict
    assert [finding.origin.names for finding in result.findings] == (
        [] if verdict == "identical" else [("0",)]
    )


def test_an_extra_save_is_a_note():
    """A checkpoint every ten minutes."""
    b = train(before=lambda tape, step, x: step == 2 and tape.save({"0": tape.outside(1)}))
    result = judge(train().record(), b.record())
    assert result.verdict == "identical"
    assert "torch.save" in notes_of(result)[0]


def test_different_numbers_of_steps():
    result = judge(train(3).record(), train(5).record())
    assert result.verdict == "different"
    assert reason_of(result) == "the runs made different numbers of steps, 3 and 5; the first 3 are identical"
    assert result.steps == 3
    assert result.final_digest[0] != result.final_digest[1]


def test_a_stopped_run_is_compared_over_the_common_steps():
    tape = train(3)
    del tape.log[-1]
    result = judge(train(5).record(), tape.record(status="stopped"))
    assert (result.verdict, result.steps) == ("identical", 3)
    assert result.final_digest[0] == result.final_digest[1]


def test_events_after_the_stop_are_not_compared():
    """A stopped run may have begun a step; the other run's next step has reads that it never came to."""
    tape = train(3)
    del tape.log[-1]
    tape.batch(["half a step"])
    more = train(5, before=reads({3: ["x"]}))
    result = judge(more.record(), tape.record(status="stopped"))
    assert (result.verdict, result.steps, notes_of(result)) == ("identical", 3, ())


def test_a_stopped_run_with_an_extra_read_before_training():
    """Its step numbers are shifted by one, so that it was stopped one step earlier."""
    runs = []
    for extra in (0, 1):
        tape = Tape(level="step")
        for _ in range(1 + extra):
            tape.read(tape.outside("size"), 2)
        while tape.step < 5:
            tape.boundary({"w": tape.outside("w")})
        runs.append(tape)
    result = judge(runs[0].record(), runs[1].record(status="stopped"))
    assert (result.verdict, result.steps) == ("identical", 3)


def test_a_run_that_ended_before_the_other_was_stopped_is_different():
    stopped = train(4)
    del stopped.log[-1]
    result = judge(train(3).record(), stopped.record(status="stopped"))
    assert result.verdict == "different"
    assert "3 and at least 4" in reason_of(result)


@pytest.mark.parametrize("status", ["failed", "running"])
def test_a_run_that_did_not_end_is_not_judged(status):
    broken = train(2)
    del broken.log[-1]
    record = broken.record(status=status, failure="ValueError: no", exit_status=1)
    result = judge(train(3).record(), record)
    assert result.verdict == "not_judged"
    how = "failed with status 1" if status == "failed" else "did not finish its record"
    assert reason_of(result) == f"the second run {how} (ValueError: no); 2 steps of both could be compared"


@pytest.mark.parametrize("part", [RecordedPart.STEP, RecordedPart.BACKWARD, RecordedPart.LAST_STATE])
def test_state_that_could_not_be_recorded_is_not_judged(part):
    """Equal digests of the rest prove nothing of it."""
    failures = Failures()
    failures.add(part, ZeroDivisionError("no text"))
    note = failures.notes()[0]
    whole, partial = train().record(), train().record()
    partial.info = replace(partial.info, notes=(note,))
    result = judge(whole, partial)

    assert result.verdict == "not_judged"
    assert reason_of(result) == f"the state could not be recorded in the second run: {sentence(note)}"
    assert "could not be recorded in both runs" in str(reason_of(judge(partial, partial)))


def test_a_batch_that_could_not_be_recorded_is_a_note():
    """The state is all there."""
    failures = Failures()
    failures.add(RecordedPart.BATCH, ZeroDivisionError())
    record = train().record()
    record.info = replace(record.info, notes=tuple(failures.notes()))
    result = judge(record, record)

    assert (result.verdict, result.notes) == ("identical", tuple(failures.notes()))


def test_the_end_of_a_failed_run_is_not_compared():
    """It ended at another place, with another state."""
    broken = train(3)
    broken.log.pop()
    broken.end({"w": broken.outside("half way")})
    assert judge(train(3).record(), broken.record(status="failed")).verdict == "not_judged"


def test_both_runs_failed_alike():
    a, b = (train(1).record(status="failed", failure="E: x", exit_status=1) for _ in range(2))
    assert reason_of(judge(a, b)) == "both runs failed: E: x; 1 step of both could be compared"


def test_a_difference_before_the_failure_is_a_difference():
    broken = train(2, weight="v").record(status="failed", failure="E: x", exit_status=1)
    result = judge(train(3).record(), broken)
    assert result.verdict == "different"
    assert any("the second run failed" in note for note in notes_of(result))


def test_another_script_is_not_judged():
    result = judge(train().record(command=("a/x.py",)), train().record(command=("y.py",)))
    assert (result.verdict, result.steps) == ("not_judged", 0)
    assert "x.py and y.py" in reason_of(result)


def test_another_folder_is_the_same_script():
    assert (
        judge(train().record(command=("a/x.py",)), train().record(command=("/b/x.py",))).verdict
        == "identical"
    )


def test_other_arguments_are_not_judged():
    result = judge(train().record(command=("-m", "m", "--lr", "1")), train().record(command=("-m", "m")))
    assert result.verdict == "not_judged"
    assert "`--lr 1` and `none`" in reason_of(result)


def reading_script(*values, line=8):
    tape = Tape(level="step")
    for value in values:
        tape.read(tape.outside(value), line)
    return tape


def test_reads_are_boundaries_without_optimizer():
    result = judge(reading_script(1, 2).record(), reading_script(1, 2).record())
    assert (result.verdict, result.steps) == ("identical", 2)
    assert result.final_digest[0] == result.final_digest[1]
    result = judge(reading_script(1, 2).record(), reading_script(1, 3).record())
    assert (result.verdict, result.findings[0].origin.step) == ("different", 1)


def test_another_number_of_reads_is_different_when_nothing_else_is_compared():
    result = judge(reading_script(1, 2).record(), reading_script(1, 2, 3).record())
    assert result.verdict == "different"
    assert reason_of(result) == (
        "the runs gave different values at the read `item` at train.py:8: 0 only in the first run, 1 only in"
        " the second"
    )


def test_an_extra_read_in_a_script_that_only_reads_is_a_note():
    """A log line taken by time, in an inference script whose outputs are equal."""
    a, b = reading_script(1, 2, 3), reading_script(1)
    b.read(b.outside("norm"), 99)
    for value in (2, 3):
        b.read(b.outside(value), 8)
    result = judge(a.record(), b.record())
    assert result.verdict == "identical"
    assert len(notes_of(result)) == 1


def test_an_extra_read_before_training_does_not_shift_the_steps():
    """Reads count as steps until the first backward pass."""
    runs = []
    for extra in (0, 1):
        tape = Tape(level="step")
        tape.read(tape.outside("size"), 2)
        for _ in range(extra):
            tape.read(tape.outside("time"), 3)
        for step in range(3):
            tape.boundary({"w": tape.outside(step)})
        runs.append(tape.record())
    result = judge(*runs)
    assert (result.verdict, result.steps) == ("identical", 3)


def test_a_reading_script_that_was_stopped():
    stopped = reading_script(1, 2).record(status="stopped")
    assert judge(reading_script(1, 2, 3).record(), stopped).verdict == "identical"


def test_empty_records_are_identical():
    assert judge(Tape().record(), Tape().record()).verdict == "identical"


def test_gan_with_two_optimizers():
    def gan(last):
        tape = Tape(level="step")
        for step in range(3):
            tape.boundary({"d": tape.outside(("d", step))}, op="Adam.step")
            tape.boundary({"g": tape.outside(("g", step if step < 2 else last))}, op="SGD.step")
        return tape.record()

    assert judge(gan(2), gan(2)).steps == 6
    assert judge(gan(2), gan(5)).first_step == 5


def test_torch_versions_are_a_note():
    result = judge(train().record(torch="2.6.0"), train().record(torch="2.13.0"))
    assert (result.verdict, notes_of(result)) == (
        "identical",
        ("the environments differ: torch version: 2.6.0 and 2.13.0",),
    )


def test_memory_is_that_of_one_step():
    """Events are taken one step at a time: nothing is looked ahead for more than that."""

    class Streaming:
        def __init__(self, tape):
            self.tape, self.info, self.given = tape, tape.record().info, 0

        def events(self, kinds=(), first_step=None, last_step=None):
            for event in self.tape.record().events(kinds, first_step, last_step):
                self.given = event.step
                yield event

    a, b = Streaming(train(50)), Streaming(train(50))
    furthest = []
    original = a.events

    def watched(*args, **kwargs):
        for event in original(*args, **kwargs):
            furthest.append(abs(event.step - b.given))
            yield event

    a.events = watched
    assert judge(a, b).verdict == "identical"
    assert max(furthest) <= 1


def test_the_final_digest_is_that_of_the_last_state_that_was_held():
    """A model that is gone when its script ends leaves an `end` event that holds nothing."""

    def trained(weight):
        tape = Tape()
        parameter = tape.outside(weight)
        tape.boundary({"w": parameter})
        tape.end({})
        return tape.record()

    digests = [judge(trained(weight), trained(weight)).final_digest for weight in ("w", "v")]

    assert digests[0] != digests[1]


def saves(values):
    def save(tape, step, parameter):
        tape.save({"w": tape.outside(values)})

    return save


def test_values_that_are_only_read_out_leave_the_state_identical():
    def read(values):
        def add(tape, step, x):
            tape.read(tape.outside(values[step]), 8)
            tape.read(tape.outside(("same", step)), 9)
            tape.read(tape.outside(values[step]), 10, op="tolist")

        return add

    a, b = train(before=read("abc")), train(before=read("axy"))
    result = judge(a.record(), b.record())
    assert (result.verdict, result.state) == ("different", "identical")
    assert reason_of(result) == "the training is identical at every step; 2 reported values differ"
    assert [(found.origin.site.line, found.origin.step) for found in result.reported] == [(8, 1), (10, 1)]
    assert evidence_of(result.reported[0]) == ("it differs in 2 steps",)
    assert result.first_step == 1


def test_a_state_that_differs_later_is_named_beside_the_value_that_was_read_before():
    def read(value):
        return lambda tape, step, x: tape.read(tape.outside(value), 8)

    def change(tape, step, parameter):
        if step == 2:
            parameter.memory.cells[""] = "other"

    a, b = train(before=read("x")), train(before=read("y"), after=change)
    result = judge(a.record(), b.record())
    assert (result.verdict, result.state, result.first_step) == ("different", "different", 0)
    assert reason_of(result) == "a value that was read differs at step 0; the state differs from step 2 on"
    assert result.reported == ()


def test_what_is_saved_belongs_to_the_state():
    result = judge(train(after=saves("x")).record(), train(after=saves("y")).record())
    assert (result.verdict, result.state) == ("different", "different")
    assert reason_of(result) == "a value that was saved differs at step 0"


def test_without_any_state_the_values_that_are_read_out_decide():
    tapes = Tape(level="step"), Tape(level="step")
    for tape, value in zip(tapes, "xy", strict=True):
        tape.read(tape.outside(value), 3)
    result = judge(*[tape.record() for tape in tapes])
    assert (result.verdict, result.state) == ("different", "different")


@pytest.mark.parametrize("status", ["failed", "running"])
def test_a_run_that_was_cut_short_proves_nothing_of_the_state(status):
    a, b = train(before=reads({1: ["x"]})), train(before=reads({1: ["y"]}))
    result = judge(a.record(), b.record(status=status))
    assert (result.verdict, result.state, result.reported) == ("different", "not_judged", ())


def test_another_number_of_steps_is_no_identical_state():
    a, b = train(3, before=reads({1: ["x"]})), train(4, before=reads({1: ["y"]}))
    assert judge(a.record(), b.record()).state == "different"


def reading_ahead(of_steps, *, thread="Thread-1", status="finished"):
    """A run in which another thread reads values out, so many of them in each step."""
    values = iter(range(100))

    def read(tape, step, _):
        for _ in range(of_steps[step]):
            tape.read(tape.outside(("sample", next(values))), 50, thread=thread)

    return train(before=read).record(status=status)


@pytest.mark.parametrize("other", [(1, 2, 4), (4, 2, 1), (1, 3, 3)])
def test_in_which_step_another_thread_reads_a_value_out_is_chance(other):
    result = judge(reading_ahead((2, 2, 3)), reading_ahead(other))
    assert (result.verdict, result.reported, notes_of(result)) == ("identical", (), ())


def test_in_which_step_the_training_thread_reads_a_value_out_counts():
    result = judge(reading_ahead((2, 2, 3), thread=""), reading_ahead((1, 2, 4), thread=""))
    assert (result.verdict, result.first_step) == ("different", 1)


def test_another_thread_may_have_come_further_where_runs_were_ended():
    ahead = reading_ahead((2, 2, 5), status="stopped")
    assert notes_of(judge(reading_ahead((1, 2, 2), status="stopped"), ahead)) == ()


def test_values_of_another_thread_that_differ_as_a_whole_count():
    def read(value):
        return lambda tape, step, _: tape.read(tape.outside((value, step)), 50, thread="Thread-1")

    result = judge(train(before=read("a")).record(), train(before=read("b")).record())
    assert (result.verdict, result.state) == ("different", "identical")
    assert [(found.origin.kind, found.origin.step) for found in result.reported] == [("read", 0)]


def test_values_of_threads_with_other_names_count_in_runs_that_were_ended_too():
    """No name is in both runs, so that thread by thread there is nothing to compare."""

    def read(value):
        thread = f"reader of {value}"
        return lambda tape, step, _: tape.read(tape.outside((value, step)), 50, thread=thread)

    a, b = (train(before=read(value)).record(status="stopped") for value in "ab")
    assert judge(a, b).verdict == "different"
