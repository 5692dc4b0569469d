"""The origin of a difference, found from data flow."""

from __future__ import annotations

import random
import time
from dataclasses import replace

import pytest
from event_tape import Tape, chained, digest, drawn_with
from sentence_support import evidence_of, notes_of

from samebits.comparison import _contents, origin
from samebits.comparison.lookup import Lookup
from samebits.comparison.ops import reordered
from samebits.comparison.origin import find_origins
from samebits.comparison.verdict import compare
from samebits.records.events import NO_WRITER


def origins(make, first, second, excluded=()):
    """Two runs of `make(tape, value)`, with a value each."""
    tapes = Tape(), Tape()
    for tape, value in zip(tapes, (first, second), strict=True):
        make(tape, value)
    return find_origins(tapes[0].record(), tapes[1].record(), excluded)


def only(make, first, second):
    """The only origin of two runs."""
    found = origins(make, first, second)
    assert len(found.findings) == 1, [(f.op, f.site, evidence_of(f)) for f in found.findings]
    assert found.complete
    return found.findings[0]


def test_kernel_with_other_bits_for_the_same_inputs():
    def run(tape, noise):
        x = tape.op("ones.default", line=1, result=1)
        y = tape.op("mul.Tensor", x, line=2)
        z = tape.op("scatter_add.default", y, x, line=3, noise=noise)
        w = tape.op("exp.default", z, line=4)
        tape.boundary({"w": w})

    finding = only(run, 1, 2)
    assert (finding.origin.op, finding.origin.site.line, finding.cause) == (
        "aten::scatter_add.default",
        3,
        "nondeterministic-kernel",
    )
    assert (finding.origin.inputs_equal, finding.origin.origin_kind, finding.origin.kind) == (
        True,
        "kernel",
        "op",
    )
    assert finding.origin.inputs == ("f32[4]", "f32[4]")
    assert (finding.origin.outputs, finding.origin.positions, finding.origin.events) == (
        ("f32[4]",),
        (2,),
        (2, 2),
    )


def test_backward_op_has_its_forward_site_and_module():
    def run(tape, noise):
        x = tape.op("ones.default", line=1, result=1)
        g = tape.op("bwd.default", x, line=9, noise=noise, forward=4, module="fc1")
        tape.boundary({"w": g})

    finding = only(run, 1, 2)
    assert (finding.origin.forward_site.line, finding.origin.module) == (4, "fc1")


def test_independent_origins_come_in_order_and_once():
    def run(tape, noise):
        x = tape.op("ones.default", line=1, result=1)
        late = {}
        for i in range(3):
            late[f"p{i}"] = tape.op("sum.default", x, line=5, noise=(noise, i))
        first = tape.op("cumsum.default", x, line=2, noise=noise)
        tape.boundary({"q": first, **late})

    found = origins(run, 1, 2)
    assert [f.origin.site.line for f in found.findings] == [5, 2]
    assert "3 such events are origins" in evidence_of(found.findings[0])


def test_uninitialized_memory_is_blamed_where_it_enters():
    def run(tape, garbage):
        x = tape.empty(garbage, line=3)
        y = tape.op("mul.Tensor", x, line=8)
        tape.boundary({"w": y})

    finding = only(run, 1, 2)
    assert (finding.cause, finding.origin.op, finding.origin.site.line) == (
        "uninitialized",
        "aten::empty.memory_format",
        3,
    )
    assert evidence_of(finding) == (
        (
            "aten::empty.memory_format returns memory that still holds its old contents; it was read by"
            " aten::mul.Tensor at /home/u/train.py:8"
        ),
    )


def test_memory_that_is_overwritten_is_not_blamed():
    """`empty` followed by `copy_`, `uniform_` or an `out=` call reads nothing of what was there."""

    def run(tape, value):
        x = tape.op("ones.default", line=1, result=1)
        buffer = tape.empty(("garbage", value), line=3)
        tape.copy_(buffer, tape.op("sum.default", x, line=4, noise=value), line=5)
        out = tape.empty(("more", value), line=6)
        tape.op("mm.out", x, out, line=7, into=out, noise=value)
        tape.boundary({"w": buffer, "v": out})

    found = origins(run, 1, 2)
    assert [(f.origin.op, f.cause) for f in found.findings] == [
        ("aten::sum.default", "nondeterministic-kernel"),
        ("aten::mm.out", "nondeterministic-kernel"),
    ]


def test_partial_writes_are_followed_past_those_that_are_equal():
    def run(tape, value):
        x = tape.op("ones.default", line=1, result=1)
        whole = tape.parts("zeros.default", 2, {"a": 0, "b": 0})
        tape.copy_(whole.view("a"), tape.op("sum.default", x, line=4, noise=value), line=5)
        tape.copy_(whole.view("b"), x, line=6)
        tape.boundary({"w": whole})

    assert only(run, 1, 2).origin.site.line == 4


def test_partial_write_over_uninitialized_memory():
    """The differing write explains the difference; the memory before it was overwritten."""

    def run(tape, value):
        x = tape.op("ones.default", line=1, result=1)
        whole = tape.parts("empty.memory_format", 2, {"a": ("garbage", value), "b": ("garbage", value)})
        tape.copy_(whole.view("a"), tape.op("sum.default", x, line=4, noise=value), line=5)
        tape.copy_(whole.view("b"), x, line=6)
        tape.boundary({"w": whole})

    assert only(run, 1, 2).origin.site.line == 4


def test_rest_of_partly_written_memory_is_blamed_when_read():
    def run(tape, value):
        x = tape.op("ones.default", line=1, result=1)
        whole = tape.parts("empty.memory_format", 2, {"a": ("garbage", value), "b": ("garbage", value)})
        tape.copy_(whole.view("a"), x, line=5)
        tape.boundary({"w": tape.op("sum.default", whole, line=6)})

    assert (only(run, 1, 2).cause, only(run, 1, 2).origin.site.line) == ("uninitialized", 2)


def test_unread_memory_in_the_state_is_no_origin():
    def run(tape, garbage):
        buffer = tape.empty(garbage, line=3)
        tape.boundary({"w": tape.op("ones.default", line=1, result=1)}, {"pad": buffer})

    found = origins(run, 1, 2)
    assert (found.findings, found.unread) == ((), ("pad",))
    assert notes_of(found) == ("pad holds memory that was never written; nothing that was compared read it",)
    assert origins(run, 1, 2, ("pad",)).unread == ()


def test_unread_memory_that_was_partly_written_or_copied():
    def run(tape, garbage):
        x = tape.op("ones.default", line=1, result=1)
        whole = tape.parts("empty.memory_format", 2, {"a": garbage, "b": garbage})
        tape.copy_(whole.view("a"), x, line=5)
        moved = tape.op("_to_copy.default", tape.empty((garbage, 2), line=6), line=7)
        tape.boundary({}, {"whole": whole, "moved": moved})

    assert origins(run, 1, 2).unread == ("whole", "moved")


def test_unread_memory_beside_a_true_difference():
    def run(tape, value):
        buffer = tape.empty(value, line=3)
        x = tape.op("ones.default", line=1, result=1)
        tape.boundary({"w": tape.op("sum.default", x, line=5, noise=value)}, {"pad": buffer})

    found = origins(run, 1, 2)
    assert found.unread == ("pad",)
    assert [f.origin.site.line for f in found.findings] == [5]


def test_state_computed_from_uninitialized_memory_is_an_origin():
    def run(tape, garbage):
        buffer = tape.empty(garbage, line=3)
        tape.add_(buffer, tape.op("ones.default", line=1, result=1), line=4)
        tape.boundary({}, {"pad": buffer})

    found = origins(run, 1, 2)
    assert found.unread == ()
    assert [f.cause for f in found.findings] == ["uninitialized"]


def test_memory_changed_from_outside_is_not_unread():
    def run(tape, value):
        buffer = tape.empty("same garbage", line=3)
        buffer.memory.cells[""] = value  # through NumPy
        tape.boundary({}, {"pad": buffer})

    found = origins(run, 1, 2)
    assert found.unread == ()
    assert [f.origin.origin_kind for f in found.findings] == ["outside"]


def test_partial_writes_that_both_differ():
    def run(tape, value):
        x = tape.op("ones.default", line=1, result=1)
        whole = tape.parts("zeros.default", 2, {"a": 0, "b": 0})
        for part, line in (("a", 4), ("b", 5)):
            tape.copy_(whole.view(part), tape.op("sum.default", x, line=line, noise=value), line=8)
        tape.boundary({"w": whole})

    assert [f.origin.site.line for f in origins(run, 1, 2).findings] == [4, 5]


def test_equal_partial_writes_are_passed_over_whatever_else_the_run_did():
    """Copies with the same contents to other memory, in one run only, do not confuse the chain."""

    def run(tape, value):
        x = tape.op("ones.default", line=1, result=1)
        log = tape.parts("zeros.default", 2, {"a": 0, "b": 0})
        whole = tape.parts("zeros.default", 3, {"a": 0, "b": 0})
        tape.copy_(whole.view("a"), tape.op("sum.default", x, line=4, noise=value), line=8)
        for target in [log, whole] if value == 1 else [whole]:
            tape.copy_(target.view("b"), x, line=9)
        tape.boundary({"w": whole})

    assert only(run, 1, 2).origin.site.line == 4


def test_a_read_of_uninitialized_memory_is_an_origin():
    def run(tape, garbage):
        tape.read(tape.empty(garbage, line=3), line=4)

    finding = only(run, 1, 2)
    assert (finding.cause, finding.origin.site.line) == ("uninitialized", 3)


def test_memory_that_numpy_could_write_is_not_called_uninitialized():
    def run(tape, value):
        x = tape.empty(value, line=3)
        tape.read(tape.outside("same"), line=2)
        event = tape.log[-1]
        tape.log[-1] = replace(event, op="numpy", links=(replace(event.links[0], memory=x.memory.serial),))
        tape.boundary({"w": tape.op("mul.Tensor", x, line=5)})

    assert (only(run, 1, 2).origin.origin_kind, only(run, 1, 2).cause) == ("outside", "unknown")


def test_a_value_from_outside_enters_at_its_first_op():
    """`torch.tensor(time.time())`."""

    def run(tape, value):
        x = tape.op("lift_fresh.default", tape.outside(value), line=6)
        tape.boundary({"w": tape.op("mul.Tensor", x, line=7)})

    finding = only(run, 1, 2)
    assert (finding.origin.op, finding.origin.site.line, finding.origin.origin_kind, finding.cause) == (
        "aten::lift_fresh.default",
        6,
        "outside",
        "unknown",
    )
    assert finding.origin.inputs_equal is False


def test_state_from_outside():
    """A parameter that NumPy or a file filled: there is no op to blame."""

    def run(tape, value):
        tape.boundary({"w": tape.outside(value)})

    finding = only(run, 1, 2)
    assert (finding.origin.kind, finding.origin.names) == ("step", ("w",))
    assert "w (f32[4]) differs and no recorded operation wrote it" in evidence_of(finding)[0]


def test_memory_changed_from_outside_after_an_op():
    def run(tape, value):
        x = tape.op("zeros.default", line=1, result=0)
        x.memory.cells[""] = value  # through x.numpy()
        tape.boundary({"w": tape.op("mul.Tensor", x, line=7)})

    assert (only(run, 1, 2).origin.origin_kind, only(run, 1, 2).origin.site.line) == ("outside", 7)


def test_an_address_used_again_by_numpy():
    """The recorder sees an old writer at an address that now belongs to NumPy, another one in each run."""

    def run(tape, value):
        old = [
            tape.op("exp.default", tape.op("ones.default", line=1, result=1), line=2 + i) for i in range(2)
        ]
        x = tape.outside(value)
        x.memory = old[value].memory
        x.memory.cells[""] = ("from numpy", value)
        tape.boundary({"w": tape.op("mul.Tensor", x, line=7)})

    assert (only(run, 0, 1).origin.origin_kind, only(run, 0, 1).origin.site.line) == ("outside", 7)


def test_a_python_value_enters_as_an_argument():
    def run(tape, rate):
        x = tape.op("ones.default", line=1, result=1)
        tape.boundary({"w": tape.op("mul.Scalar", x, line=7, arguments=str(rate))})

    finding = only(run, 0.1, 0.2)
    assert (finding.origin.origin_kind, finding.cause, finding.origin.inputs_equal) == (
        "argument",
        "unknown",
        True,
    )
    assert evidence_of(finding) == ("its arguments were (0.1) in the first run and (0.2) in the second",)


def test_a_python_value_that_came_from_a_read_is_followed():
    """`x.mul_(loss.item())` where the loss differs already."""

    def run(tape, noise):
        x = tape.op("ones.default", line=1, result=1)
        loss = tape.op("sum.default", x, line=2, noise=noise)
        tape.read(loss, line=3)
        tape.boundary({"w": tape.op("mul.Scalar", x, line=7, arguments=str(noise))})

    found = origins(run, 1, 2)
    assert [f.origin.site.line for f in found.findings] == [2]
    assert notes_of(found) == (
        "a value that differs entered at /home/u/train.py:7, after a read or draw that differs",
    )


def test_a_value_that_differs_before_the_read_is_its_own_origin():
    def run(tape, noise):
        x = tape.op("ones.default", line=1, result=1)
        w = tape.op("mul.Scalar", x, line=2, arguments=str(noise))
        tape.read(tape.op("sum.default", x, line=5, noise=noise), line=6)
        tape.boundary({"w": w})

    assert [f.origin.site.line for f in origins(run, 1, 2).findings] == [2, 5]


def test_batch():
    def run(tape, value):
        tape.seed(0)
        (x,) = tape.batch([value], line=5)
        tape.boundary({"w": tape.op("mul.Tensor", x, line=7)})

    finding = only(run, 1, 2)
    assert (finding.origin.kind, finding.origin.op, finding.origin.site.line, finding.origin.origin_kind) == (
        "batch",
        "DataLoader",
        5,
        "batch",
    )
    assert finding.origin.names == ("0",)


def test_argument_of_another_thread_says_which():
    """Which thread comes first may be why the value is another one."""

    def run(tape, k):
        x = tape.op("ones.default", line=1, result=1)
        tape.boundary({"w": tape.op("mul.Tensor", x, line=2, arguments=str(k), thread=f"worker-{k}")})

    finding = only(run, 1, 2)
    assert finding.origin.origin_kind == "argument"
    assert evidence_of(finding)[1] == "it ran in worker-1 in the first run, in worker-2 in the second"


def from_worker(tape, value, line=5):
    """What unpickling a tensor of another process, or of a file, does."""
    return tape.op("set_.source_Storage_storage_offset", tape.outside(value), line=line, result=value)


def test_batch_of_worker_processes():
    """Its tensors come through shared memory: the op that maps it computes nothing."""

    def run(tape, value):
        tape.seed(0)
        from_worker(tape, value)
        (x,) = tape.batch([value], line=5)
        tape.boundary({"w": tape.op("mul.Tensor", x, line=7)})

    finding = only(run, 1, 2)
    assert (finding.origin.kind, finding.origin.origin_kind, finding.cause) == ("batch", "batch", "unknown")


def test_batch_of_worker_processes_linked_to_its_memory():
    def run(tape, value):
        made = from_worker(tape, value)
        tape.batch([value], line=5)
        event = tape.log[-1]
        link = replace(event.links[0], memory=made.memory.serial, writer=made.memory.writer)
        tape.log[-1] = replace(event, links=(link,))
        made.memory.writer = event.seq
        tape.boundary({"w": tape.op("mul.Tensor", made, line=7)})

    assert only(run, 1, 2).origin.kind == "batch"


def test_tensor_from_a_file_is_no_kernel():
    def run(tape, value):
        tape.boundary({"w": tape.op("mul.Tensor", from_worker(tape, value, line=3), line=7)})

    finding = only(run, 1, 2)
    assert (finding.origin.site.line, finding.origin.origin_kind, finding.cause) == (3, "outside", "unknown")


def test_batches_that_arrive_between_the_draws_of_their_loader():
    """The main process unpickles what workers send whenever it comes: that order is no difference.

    Nor is the memory that a draw overwrites, which is read by nothing.
    """

    def run(tape, arrival):
        tape.seed(0)
        for when in range(2):
            if when == arrival:
                from_worker(tape, ("early", arrival))
            garbage = tape.empty((arrival, when), line=5)
            tape.op("random_.default", garbage, line=5, into=garbage, result=("seed", when), draws=True)
        from_worker(tape, ("rows", arrival))
        (x,) = tape.batch([("rows", arrival)], line=5)
        tape.boundary({"w": tape.op("mul.Tensor", x, line=7)})

    finding = only(run, 0, 1)
    assert (finding.origin.kind, finding.origin.origin_kind) == ("batch", "batch")


def test_batch_made_by_ops_is_followed():
    def run(tape, noise):
        made = tape.op("stack.default", tape.op("ones.default", line=1, result=1), line=4, noise=noise)
        tape.batch([made.value], line=5)
        event = tape.log[-1]
        tape.log[-1] = replace(event, links=(replace(event.links[0], memory=1, writer=made.memory.writer),))
        tape.log[-1] = replace(
            tape.log[-1],
            links=(replace(event.links[0], memory=made.memory.serial, writer=made.memory.writer),),
        )
        made.memory.writer = event.seq
        tape.boundary({"w": tape.op("mul.Tensor", made, line=7)})

    assert only(run, 1, 2).origin.site.line == 4


def test_batch_made_by_ops_is_followed_by_its_contents():
    """A loader without workers collates in the main process; its memory is new to the recorder."""

    def run(tape, noise):
        made = tape.op("stack.default", tape.op("ones.default", line=1, result=1), line=4, noise=noise)
        (x,) = tape.batch([made.value], line=5)
        tape.boundary({"w": tape.op("mul.Tensor", x, line=7)})

    assert only(run, 1, 2).origin.site.line == 4


def test_loader_that_draws_its_seed():
    """`shuffle=True` with an unseeded generator: the sampler draws at the loader's line."""

    def run(tape, state):
        tape.generator = state
        tape.randn(line=5)
        (x,) = tape.batch([("rows", state)], line=5)
        tape.boundary({"w": tape.op("mul.Tensor", x, line=7)})

    finding = only(run, 1, 2)
    assert (finding.cause, finding.origin.op, finding.origin.site.line) == (
        "unseeded-torch",
        "aten::randn.default",
        5,
    )


def test_sparse_tensors_are_followed_by_their_contents():
    """They have no storage that could be followed."""

    def run(tape, noise):
        x = tape.op("ones.default", line=1, result=1)
        sparse = tape.op("embedding_sparse_backward.default", x, line=4, noise=noise)
        unlinked = tape.outside(sparse.value)
        tape.boundary({"w": tape.op("mul.Tensor", unlinked, line=7)})

    assert only(run, 1, 2).origin.site.line == 4


def test_generators_that_were_used_are_evidence_for_values_from_outside():
    def run(tape, value):
        for step in range(2):
            tape.generators["python"] = (value, step)
            tape.boundary({"w": tape.op("lift_fresh.default", tape.outside((value * step, step)), line=6)})

    assert evidence_of(only(run, 1, 2))[1] == (
        "the state of Python's generator differed at step 0; it was used at step 1; it was never seeded"
    )


def test_unseeded_generator():
    def run(tape, state):
        tape.generator = state
        tape.boundary({"w": tape.randn(line=4)})

    finding = only(run, 1, 2)
    assert (finding.cause, finding.origin.site.line, finding.origin.origin_kind) == (
        "unseeded-torch",
        4,
        "rng",
    )
    assert finding.origin.inputs == ("torch's generator",)
    assert evidence_of(finding) == (
        "torch's generator was not in the same state before aten::randn.default: it was never seeded",
    )


def test_generator_seeded_from_something_that_changes():
    def run(tape, value):
        tape.seed(value, line=2)
        tape.boundary({"w": tape.randn(line=4)})

    finding = only(run, 1, 2)
    assert (finding.cause, finding.origin.kind, finding.origin.op, finding.origin.site.line) == (
        "unseeded-torch",
        "rng",
        "seed",
        2,
    )
    assert "torch.manual_seed(1) and torch.manual_seed(2)" in evidence_of(finding)[0]


def test_seed_of_another_library_is_no_evidence():
    def run(tape, state):
        tape.seed(state, call="numpy.random.seed")
        tape.generator = state
        tape.boundary({"w": tape.randn(line=4)})

    assert "it was never seeded" in evidence_of(only(run, 1, 2))[0]


def test_an_extra_draw_in_one_run():
    def run(tape, extra):
        tape.seed(0)
        tape.randn(line=3)
        if extra:
            tape.randn(line=4)
        tape.boundary({"w": tape.randn(line=6)})

    finding = only(run, False, True)
    assert (finding.cause, finding.origin.origin_kind) == ("unknown", "control-flow")
    assert (finding.origin.site.line, finding.origin.other_site.line) == (4, 6)


def test_a_draw_of_another_size():
    def run(tape, size):
        tape.seed(0)
        tape.randn(line=3, arguments=f"[{size}]", shape=(size,))
        tape.boundary({"w": tape.randn(line=6)})

    finding = only(run, 2, 3)
    assert (finding.origin.site.line, finding.cause) == (3, "unknown")
    assert "drew a different amount" in evidence_of(finding)[1]


def test_a_draw_that_is_not_recorded():
    def run(tape, state):
        tape.seed(0)
        tape.randn(line=3)
        tape.generator = (tape.generator, state)
        tape.boundary({"w": tape.randn(line=6)})

    finding = only(run, 1, 2)
    assert (finding.origin.site.line, finding.cause) == (6, "unknown")
    assert "something that is not recorded moved it after aten::randn.default" in evidence_of(finding)[1]


def test_a_generator_of_its_own():
    def run(tape, state):
        tape.seed(0)
        default, tape.generator = tape.generator, state
        x = tape.randn(line=6)
        tape.generator = default
        tape.boundary({"w": x})

    finding = only(run, 1, 2)
    assert finding.cause == "unknown"
    assert "another generator" in evidence_of(finding)[0]


def test_a_generator_that_was_given():
    """The sampler of a loader makes a generator of its own and seeds it with a draw from the default one."""

    def run(tape, state):
        tape.generator = state
        tape.randn(line=5)
        rows = tape.op("randperm.generator", line=5, draws=True)
        tape.boundary({"w": rows})

    finding = only(run, 1, 2)
    assert (finding.origin.op, finding.cause) == ("aten::randn.default", "unseeded-torch")

    def alone(tape, state):
        tape.seed(0)
        default, tape.generator = tape.generator, state
        x = tape.op("randn.generator", line=6, draws=True)
        tape.generator = default
        tape.boundary({"w": x})

    finding = only(alone, 1, 2)
    assert (finding.cause, finding.origin.inputs) == ("unknown", ("a generator given to it",))


def test_same_generator_state_and_other_numbers_is_the_kernel():
    def run(tape, noise):
        tape.seed(0)
        tape.boundary({"w": tape.randn(line=4, noise=noise)})

    assert only(run, 1, 2).cause == "nondeterministic-kernel"


def accumulate(tape, order, *, threads=True):
    """Values added in place by threads, or by one thread, in an order."""
    values = {name: tape.op("ones.default", line=1, result=name, arguments=name) for name in "xyz"}
    total = tape.op("zeros.default", line=2, result=0)
    for name in order:
        tape.add_(total, values[name], 9, thread=f"T{name}" if threads else "")
    tape.boundary({"total": total})


def test_race_of_threads_that_accumulate():
    finding = only(accumulate, "xyz", "yzx")
    assert (finding.cause, finding.origin.site.line, finding.origin.origin_kind) == ("race", 9, "order")
    assert any("Tx" in line or "Ty" in line or "Tz" in line for line in evidence_of(finding))


def test_race_of_pool_threads_that_took_other_jobs():
    def run(tape, order):
        values = {name: tape.op("ones.default", line=1, result=name, arguments=name) for name in "xyz"}
        total = tape.op("zeros.default", line=2, result=0)
        for worker, name in enumerate(order):
            tape.add_(total, values[name], 9, thread=f"pool_{worker}")
        tape.boundary({"total": total})

    finding = only(run, "xyz", "yzx")
    assert (finding.cause, finding.origin.site.line) == ("race", 9)


def test_race_of_gradients_of_which_the_first_is_taken_over():
    """`AccumulateGrad` keeps the first gradient and adds the others to it."""

    def run(tape, order):
        made = {n: tape.op("mm.default", tape.outside(n), line=1, thread=f"T{n}") for n in "xyz"}
        total = made[order[0]]
        for name in order[1:]:
            tape.add_(total, made[name], 9, thread=f"T{name}")
        tape.boundary({"total": total})

    finding = only(run, "xyz", "zxy")
    assert (finding.cause, finding.origin.site.line) == ("race", 9)


def test_the_first_value_taken_over_counts_like_one_added():
    tapes = Tape(), Tape()
    for tape, order in zip(tapes, ("xyz", "zxy"), strict=True):
        made = {name: tape.op("ones.default", line=1, result=name, arguments=name) for name in "xyz"}
        for name in order[1:]:
            tape.add_(made[order[0]], made[name], 9)
    lookup = Lookup(tapes[0].record(), tapes[1].record(), (-1, -1), (0, 0))
    assert reordered(lookup, tapes[0].log[-1], tapes[1].log[-1]) == {""}


def test_writes_before_an_equal_state_do_not_count():
    tapes = Tape(), Tape()
    last = []
    for tape, order in zip(tapes, ("wzyx", "yxwz"), strict=True):
        values = {name: tape.op("ones.default", line=1, result=name, arguments=name) for name in "wxyz"}
        total = tape.op("zeros.default", line=2, result=0)
        for count, name in enumerate(order):
            tape.op(
                "add_.Tensor", total, values[name], line=9, into=total, result="same" if count == 1 else None
            )
        last.append(tape.log[-1])
    lookup = Lookup(tapes[0].record(), tapes[1].record(), (-1, -1), (0, 0))
    assert reordered(lookup, *last) is None


def test_order_in_one_thread_is_no_race():
    """Iteration over a set."""

    def run(tape, order):
        accumulate(tape, order, threads=False)

    finding = only(run, "xyz", "zxy")
    assert finding.cause == "unknown"
    assert any("ran in a different order" in line for line in evidence_of(finding))
    assert finding.origin.site.line == 9


def foreach_add(tape, params, grads, line):
    """A step of an optimizer: one op over the parameters that have a gradient."""
    shown = [tape._shown("in", t) for t in (*params, *grads)]
    for param, grad in zip(params, grads, strict=True):
        param.memory.cells[""] = digest((param.value, grad.value)).hex()
    shown += [tape._shown("out", param) for param in params]
    seq = tape.add("op", "aten::_foreach_add_.List", shown, line)
    for param in params:
        param.memory.writer = seq


@pytest.mark.parametrize("uses", [(0, 1), (1, 0)])
def test_a_parameter_that_only_one_run_uses_is_not_in_another_order(uses):
    """`for _ in range(random.randint(0, 1)): h = middle(h)`: without a gradient the optimizer leaves it."""

    def run(tape, uses):
        first, middle = (tape.op("uniform_.default", line=i, result=i) for i in (1, 2))
        x = tape.op("mul.Tensor", first, line=5)
        for _ in range(uses):
            x = tape.op("exp.default", x, middle, line=7)
        grads = [tape.op("bwd.default", x, line=9, result=1), tape.op("bwd.default", x, line=10, result=2)]
        used = [first, middle][: 1 + uses]
        foreach_add(tape, used, grads[: 1 + uses], line=12)
        tape.boundary({"first": first, "middle": middle, "x": x})

    found = origins(run, *uses)
    assert [(f.origin.site.line, f.origin.origin_kind) for f in found.findings] == [(7, "control-flow")]
    assert not any("another order" in line for f in found.findings for line in evidence_of(f))


def test_race_that_is_not_in_place():
    """`total = total + f(x)` by threads."""

    def run(tape, order):
        total = tape.op("zeros.default", line=2, result=0)
        values = {name: tape.op("ones.default", line=1, result=name, arguments=name) for name in "xyz"}
        for name in order:
            total = tape.op("add.Tensor", total, values[name], line=9, thread=f"T{name}")
        tape.boundary({"total": total})

    finding = only(run, "xyz", "zyx")
    assert (finding.cause, finding.origin.site.line) == ("race", 9)


def test_race_of_read_and_write():
    """One thread writes what another reads, sometimes before it and sometimes after."""

    def run(tape, first):
        shared = tape.op("zeros.default", line=2, result=0)
        one = tape.op("ones.default", line=1, result=1)
        if first:
            tape.copy_(shared, one, 5, thread="writer")
        seen = tape.op("mul.Tensor", shared, line=7, thread="reader")
        if not first:
            tape.copy_(shared, one, 5, thread="writer")
        tape.boundary({"seen": seen})

    finding = only(run, True, False)
    assert (finding.cause, finding.origin.origin_kind) == ("race", "order")
    assert finding.origin.site.line == 5
    assert any("reader" in line and "writer" in line for line in evidence_of(finding))


def test_lost_update():
    """Two threads are inside one in-place op at the same time."""

    def run(tape, noise):
        shared = tape.op("zeros.default", line=2, result=0)
        values = [tape.op("ones.default", line=1, result=i, arguments=str(i)) for i in range(2)]
        tape.add_(shared, values[0], 9, thread="T0")
        tape.add_(shared, values[1], 9, thread="T1", noise=noise)
        tape.boundary({"shared": shared})

    finding = only(run, 1, 2)
    assert finding.cause == "race"
    assert any("T0" in line for line in evidence_of(finding))


def test_the_same_work_in_threads_without_difference_between_them():
    """A true kernel difference is found though the threads interleave differently."""

    def run(tape, value):
        x = tape.op("ones.default", line=1, result=1)
        jobs = [("A", 3), ("B", 4)] if value == 1 else [("B", 4), ("A", 3)]
        made = {
            name: tape.op("exp.default", x, line=line, thread=name, noise=value if name == "B" else "")
            for name, line in jobs
        }
        tape.boundary(dict(sorted(made.items())))

    finding = only(run, 1, 2)
    assert (finding.origin.site.line, finding.cause) == (4, "nondeterministic-kernel")


def test_extra_turn_of_a_loop():
    """`while time.time() < end: x = x * 2`."""

    def run(tape, turns):
        x = tape.op("ones.default", line=1, result=1)
        for _ in range(turns):
            x = tape.op("mul.Tensor", x, line=5)
        tape.boundary({"w": tape.op("exp.default", x, line=8)})

    finding = only(run, 5, 4)
    assert (
        finding.origin.origin_kind,
        finding.cause,
        finding.origin.site.line,
        finding.origin.other_site.line,
    ) == (
        "control-flow",
        "unknown",
        5,
        8,
    )
    assert finding.origin.events[0] == 5


def test_another_branch():
    def run(tape, branch):
        x = tape.op("ones.default", line=1, result=1)
        y = tape.op("exp.default" if branch else "log.default", x, line=4 if branch else 6)
        tape.boundary({"w": y})

    finding = only(run, True, False)
    assert (finding.origin.origin_kind, finding.origin.site.line, finding.origin.other_site.line) == (
        "control-flow",
        4,
        6,
    )
    assert (finding.origin.op, finding.origin.other_op) == ("aten::exp.default", "aten::log.default")


def test_a_branch_begins_where_its_first_op_is():
    def run(tape, branch):
        x = tape.op("ones.default", line=1, result=1)
        if branch:
            x = tape.op("sin.default", tape.op("exp.default", x, line=4), line=5)
        tape.boundary({"w": tape.op("log.default", x, line=6)})

    assert (only(run, True, False).origin.site.line, only(run, False, True).origin.site.line) == (4, 4)
    assert only(run, False, True).origin.events == (1, 1)


def test_noisy_operations_in_another_order():
    def run(tape, value):
        x = tape.op("ones.default", line=1, result=1)
        lines = [4, 5] if value == 1 else [5, 4]
        made = {line: tape.op("exp.default", x, line=line, noise=value) for line in lines}
        tape.boundary({"u": made[4], "v": made[5]})

    found = origins(run, 1, 2)
    assert sorted(f.origin.site.line for f in found.findings) == [4, 5]
    assert {f.cause for f in found.findings} == {"nondeterministic-kernel"}


def test_a_branch_taken_after_a_read_is_followed():
    """`if loss.item() > 1:` where the loss differs already."""

    def run(tape, noise):
        x = tape.op("ones.default", line=1, result=1)
        tape.read(tape.op("sum.default", x, line=2, noise=noise), line=3, op="bool")
        y = tape.op("exp.default" if noise == 1 else "log.default", x, line=4 + noise)
        tape.boundary({"w": y})

    assert only(run, 1, 2).origin.site.line == 2


def test_another_tensor_was_chosen():
    """`random.choice(layers)(x)`."""

    def run(tape, choice):
        made = [tape.op("ones.default", line=1 + i, result=i) for i in range(3)]
        tape.boundary({"w": tape.op("mul.Tensor", made[choice], line=9)})

    finding = only(run, 0, 2)
    assert (
        finding.origin.site.line,
        finding.origin.origin_kind,
        finding.cause,
        finding.origin.inputs_equal,
    ) == (
        9,
        "order",
        "unknown",
        False,
    )
    assert "train.py:1" in evidence_of(finding)[0]
    assert "train.py:3" in evidence_of(finding)[0]


def unbound(tape, line):
    """Two rows of a table, `for row in table`."""
    table = tape.parts("randn.default", 1, {"0": "first row", "1": "second row"})
    rows = [table.view(part, shape=(4,)) for part in table.memory.cells]
    shown = [tape._shown("in", table), *(tape._shown("out", row) for row in rows)]
    tape.add("op", "aten::unbind.int", shown, line)
    return rows


def test_another_output_of_one_op_was_chosen():
    """`random.choice(list(table))`: the op that gave the rows is innocent."""

    def run(tape, choice):
        tape.boundary({"w": tape.op("mul.Tensor", unbound(tape, line=2)[choice], line=9)})

    finding = only(run, 0, 1)
    assert (finding.origin.site.line, finding.origin.origin_kind, finding.cause) == (9, "order", "unknown")
    assert evidence_of(finding) == (
        "it took a different output of aten::unbind.int at /home/u/train.py:2 in each run",
    )


@pytest.mark.parametrize("order", [("write", "read"), ("read", "write")])
def test_the_write_that_moved_is_blamed_not_the_one_before_it(order):
    """A thread writes before or after the main thread reads; what made the tensor is innocent."""

    def run(tape, first):
        weight = tape.op("uniform.default", line=1, result="w")
        one = tape.outside(1)
        for what in (first, "read" if first == "write" else "write"):
            if what == "write":
                tape.add_(weight, one, line=2, thread="Thread-1")
            else:
                product = tape.op("mul.Tensor", weight, line=3)
        tape.boundary({"y": product})

    finding = only(run, *order)
    assert (finding.origin.site.line, finding.cause) == (2, "race")


def test_another_part_was_written():
    """`vector[hash(word) % 2] += 1`: what is written is the same, where it is written is not."""

    def run(tape, place):
        vector = tape.parts("zeros.default", 1, {"0": 0, "1": 0})
        cell = vector.view(place, shape=())
        shown = [tape._shown("in", vector), tape._shown("out", cell)]
        tape.add("op", "aten::select.int", shown, 3, arguments=f"0, {place}")
        tape.add_(cell, tape.outside(1, shape=()), line=3)
        tape.boundary({"w": tape.op("mul.Tensor", vector, line=9)})

    finding = only(run, "0", "1")
    assert (finding.origin.site.line, finding.origin.op, finding.origin.origin_kind) == (
        3,
        "aten::select.int",
        "argument",
    )


@pytest.mark.parametrize("orders", [("0", "1"), ("01", "10")])
def test_another_part_of_memory_that_was_written_is_read(orders):
    """`int(starts[index])`: the table was allocated without contents, and written before it is read."""

    def run(tape, order):
        table = tape.parts("new_empty.default", 1, {"0": f"garbage {order}", "1": f"dirt {order}"})
        for part in ("0", "1"):
            tape.copy_(table.view(part, shape=()), tape.outside(part, shape=()), line=2)
        for index in order:
            cell = table.view(index, shape=())
            shown = [tape._shown("in", table), tape._shown("out", cell)]
            tape.add("op", "aten::select.int", shown, 3, arguments=f"0, {index}")
            tape.read(cell, line=9)
        tape.boundary({"w": tape.op("mul.Tensor", cell, line=9)})

    finding = only(run, *orders)
    assert (finding.origin.site.line, finding.origin.op, finding.origin.origin_kind) == (
        3,
        "aten::select.int",
        "argument",
    )


def test_a_batch_of_other_rows_of_one_op():
    """`for x in loader(list(table))`, shuffled by Python: the loader's line gave another batch."""

    def run(tape, choice):
        (x,) = tape.batch([unbound(tape, line=2)[choice].value], line=5)
        tape.boundary({"w": tape.op("mul.Tensor", x, line=7)})

    finding = only(run, 0, 1)
    assert (finding.origin.site.line, finding.origin.origin_kind, finding.cause) == (5, "batch", "unknown")


def test_extra_ops_in_one_run_do_not_hide_the_origin():
    """A log line by time uses the same helper function as training does."""

    def run(tape, value):
        x = tape.op("ones.default", line=1, result=1)
        if value == 1:
            for _ in range(3):
                tape.read(tape.op("norm.default", x, line=77), line=78)
        y = tape.op("sum.default", x, line=5, noise=value)
        tape.boundary({"w": tape.op("norm.default", y, line=77)})

    assert only(run, 1, 2).origin.site.line == 5


def test_difference_from_an_earlier_step():
    """What a step leaves outside of the state comes in later."""

    def run(tape, noise):
        x = tape.op("ones.default", line=1, result=1)
        kept = tape.op("sum.default", x, line=2, noise=noise)
        tape.boundary({"w": x})
        tape.boundary({"w": x})
        tape.boundary({"w": tape.op("mul.Tensor", kept, line=6)})

    finding = only(run, 1, 2)
    assert (finding.origin.site.line, finding.origin.step) == (2, 0)


def test_extra_read_before_training_does_not_break_the_search():
    def run(tape, value):
        tape.read(tape.outside("size"), line=1)
        if value == 1:
            tape.read(tape.outside("time"), line=2)
        x = tape.op("ones.default", line=3, result=1)
        tape.boundary({"w": x})
        tape.boundary({"w": tape.op("sum.default", x, line=6, noise=value)})

    assert only(run, 1, 2).origin.site.line == 6


def test_different_numbers_of_steps():
    def run(tape, steps):
        x = tape.op("ones.default", line=1, result=1)
        for _ in range(steps):
            tape.op("mul.Tensor", x, line=5)
            tape.boundary({"w": x})
        tape.end({"w": x})

    finding = only(run, 2, 3)
    assert (finding.origin.origin_kind, finding.origin.step, finding.origin.site.line) == (
        "control-flow",
        2,
        5,
    )


def test_different_numbers_of_steps_and_a_read_at_the_end():
    def run(tape, steps):
        x = tape.op("ones.default", line=1, result=1)
        for _ in range(steps):
            tape.op("mul.Tensor", x, line=5)
            tape.boundary({"w": x})
        tape.read(x, line=50)

    assert [only(run, 2, 3).origin.site.line, only(run, 3, 2).origin.site.line] == [5, 5]


def test_an_extra_op_in_the_second_run_whose_steps_are_shifted():
    def run(tape, value):
        for _ in range(value):
            tape.read(tape.outside("size"), line=1)
        x = tape.op("ones.default", line=3, result=1)
        tape.boundary({"w": x})
        for _ in range(value):
            x = tape.op("exp.default", x, line=5)
        tape.boundary({"w": x})

    finding = only(run, 1, 2)
    assert (finding.origin.origin_kind, finding.origin.site.line, finding.origin.events[0]) == (
        "control-flow",
        5,
        6,
    )


def test_a_name_in_one_run_only():
    def run(tape, extra):
        x = tape.op("ones.default", line=1, result=1)
        tape.boundary({"w": x, **({"v": x} if extra else {})})

    finding = only(run, False, True)
    assert evidence_of(finding) == ("only the second run has parameter v (f32[4])",)


def test_step_level_records_have_no_origin():
    tapes = Tape(level="step"), Tape(level="step")
    for value, tape in enumerate(tapes):
        tape.boundary({"w": tape.outside(value)})
    (finding,) = find_origins(tapes[0].record(), tapes[1].record()).findings
    assert evidence_of(finding) == ("the record does not show where its contents came from",)


def test_ops_recorded_from_a_later_step():
    def run(tape, value):
        tape.boundary({"w": tape.outside("w")})
        tape.boundary({"w": tape.op("mul.Tensor", tape.outside(value), line=5)})

    finding = only(run, 1, 2)
    assert evidence_of(finding)[1] == "operations before step 1 were not recorded"


def test_an_event_that_is_missing():
    def run(tape, value):
        x = tape.op("mul.Tensor", tape.outside(value), line=5)
        x.memory.writer = 999
        tape.boundary({"w": x})

    found = origins(run, 1, 2)
    assert found.findings[0].cause == "unknown"


def test_equal_runs_have_no_origin():
    def run(tape, _):
        tape.boundary({"w": tape.op("ones.default", line=1, result=1)})

    assert origins(run, 1, 2).findings == ()


def test_the_bound_is_reported(monkeypatch):
    monkeypatch.setattr(origin, "_MOST_PAIRS", 10)

    def run(tape, value):
        x = tape.op("lift_fresh.default", tape.outside(value), line=1)
        for _ in range(50):
            x = tape.op("mul.Tensor", x, line=2)
        tape.boundary({"w": x})

    found = origins(run, 1, 2)
    assert not found.complete
    assert "the search ended after 10 pairs" in notes_of(found)[0]


def test_a_search_whose_time_is_over_gives_what_it_has():
    def run(tape, value):
        x = tape.op("lift_fresh.default", tape.outside(value), line=1)
        tape.boundary({"w": tape.op("mul.Tensor", x, line=2)})

    records = []
    for value in (1, 2):
        tape = Tape()
        run(tape, value)
        records.append(tape.record())
    assert find_origins(*records, until=time.monotonic() + 60).complete
    found = find_origins(*records, until=time.monotonic())
    assert not found.complete
    assert notes_of(found)[0].startswith("there was no time to search the records to the end")


def test_draws_at_a_line_are_looked_at_once_and_only_shortly_before(monkeypatch):
    """The walk jumps from one end of a record to the other; what lies between is not looked at for that."""
    monkeypatch.setattr(_contents, "REACH", 8)
    tapes = Tape(generator=1), Tape(generator=2)
    for tape in tapes:
        for number in range(400):
            tape.randn(line=1 + number % 3)
        tape.boundary({})
    lookup = Lookup(tapes[0].record(), tapes[1].record(), (0, 0), (0, 0))
    asked = random.Random(0).sample(range(400), 40)
    draws, given = _contents.SiteDraws(lookup), []
    for seq in asked:
        are_there, new = draws.before(lookup.a.get(seq))
        assert are_there == (seq >= 3)
        given += [event.seq for event, _ in new]
    shortly_before = {s for seq in asked for s in range(max(0, seq - 7), seq) if (seq - s) % 3 == 0}
    assert sorted(given) == sorted(shortly_before)


def test_long_chains_need_no_recursion_and_are_visited_once():
    tapes = Tape(), Tape()
    for value, tape in enumerate(tapes):
        x = tape.op("lift_fresh.default", tape.outside(value), line=1)
        for _ in range(5000):
            x = tape.op("add.Tensor", x, x, line=2)
        tape.boundary({"w": x})
    records = [tape.record() for tape in tapes]
    (finding,) = find_origins(*records).findings
    assert finding.origin.site.line == 1
    assert records[0].lookups < 20_000


def test_checkpoint_recomputation_is_just_ops():
    def run(tape, noise):
        x = tape.op("ones.default", line=1, result=1)
        tape.op("exp.default", x, line=4, noise=noise)  # forward, thrown away
        again = tape.op("exp.default", x, line=4, noise=noise)
        tape.boundary({"w": tape.op("bwd.default", again, line=9)})

    assert only(run, 1, 2).origin.events == (2, 2)


@pytest.mark.parametrize("seed", range(60))
def test_random_programs_with_one_noisy_op(seed):
    """A graph with in-place ops, threads and harmless extra ops: the noisy op is found."""
    rng = random.Random(seed)
    n_ops = rng.randrange(5, 60)
    plan = [(rng.random(), rng.randrange(10**6), rng.randrange(10**6), rng.random()) for _ in range(n_ops)]
    noisy = rng.randrange(n_ops)

    def run(tape, value):
        shuffle = random.Random((seed, value).__hash__())
        live = [tape.op("ones.default", line=1 + i, result=i) for i in range(3)]
        made = None
        for i, (kind, first, second, threaded) in enumerate(plan):
            while shuffle.random() < 0.2:
                tape.read(tape.op("norm.default", live[0], line=500), line=501 + value)
            x, y = live[first % len(live)], live[second % len(live)]
            noise = value if i == noisy else ""
            thread = f"T{i % 3}" if threaded < 0.3 else ""
            if kind < 0.25 and x is not y:
                made = tape.add_(x, y, 100 + i, noise=noise, thread=thread)
            else:
                made = tape.op("mul.Tensor", x, y, line=100 + i, noise=noise, thread=thread)
                live.append(made)
        tape.boundary({f"w{i}": tensor for i, tensor in enumerate(live)})

    tapes = Tape(), Tape()
    for tape, value in zip(tapes, (1, 2), strict=True):
        tape.hard = True
        run(tape, value)
    found = find_origins(tapes[0].record(), tapes[1].record())
    assert [f.origin.site.line for f in found.findings] == [100 + noisy]
    assert found.findings[0].cause in ("nondeterministic-kernel", "race")


def test_compare_excuses_unread_memory_and_judges_again():
    tapes = Tape(), Tape()
    for value, tape in enumerate(tapes):
        tape.boundary({"w": tape.op("ones.default", line=1, result=1)}, {"pad": tape.empty(value, line=3)})
    result = compare(tapes[0].record(), tapes[1].record())
    assert result.verdict == "identical"
    assert "left out of the comparison: pad" in notes_of(result)
    assert "pad holds memory that was never written; nothing that was compared read it" in notes_of(result)


def test_compare_puts_the_origins_first():
    tapes = Tape(), Tape()
    for value, tape in enumerate(tapes):
        x = tape.op("ones.default", line=1, result=1)
        tape.boundary(
            {"w": tape.op("sum.default", x, line=2, noise=value)}, {"pad": tape.empty(value, line=3)}
        )
    result = compare(tapes[0].record(), tapes[1].record())
    assert result.verdict == "different"
    assert [f.origin.site.line for f in result.findings] == [2]
    assert [f.origin.kind for f in result.step_findings] == ["step"]
    assert NO_WRITER == -1


@pytest.mark.parametrize(
    "run",
    [
        drawn_with("given"),
        drawn_with("moved"),
        drawn_with("never seeded"),
        chained("outside"),
        chained("argument"),
        chained("first"),
    ],
)
@pytest.mark.parametrize("length", [2_000])
def test_a_chain_longer_than_the_stack_is_followed_to_its_beginning(run, length):
    found = origins(lambda tape, value: run(tape, value, length), 1, 2)
    assert found.complete
    assert found.findings[0].origin.site.line == 3
