"""Executing ops again: what repeats, what does not, and that the script's numbers stay what they are."""

from __future__ import annotations

import json
import os
import random
import threading
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from sentence_support import notes_of
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode

from samebits._runtime.frames import Site
from samebits._torch.schemas import traits_of
from samebits.determinism.deterministic_ops import remedy_for
from samebits.digest import digest_many
from samebits.recording.distance import Difference
from samebits.recording.probes.replay_inputs import Copies, Cores
from samebits.recording.replay_results import ReplaySummary, Skipped, SkipReason, Unrepeated
from samebits.recording.session import RecordingSession
from samebits.recording.settings import RecordingSettings
from samebits.records.reader import RecordReader

if TYPE_CHECKING:
    from pathlib import Path

LIBRARY = torch.library.Library("replaytest", "DEF")


def define(schema: str):
    """Register a function as an op."""

    def register(function):
        LIBRARY.define(schema)
        LIBRARY.impl(schema.partition("(")[0], function, "CPU")
        return function

    return register


def bit() -> int:
    return os.urandom(1)[0] & 1


@define("noise(Tensor x) -> Tensor")
def noise(x):
    return x + int.from_bytes(os.urandom(4), "little")


@define("noise_(Tensor(a!) x) -> Tensor(a!)")
def noise_(x):
    return x.copy_(x + int.from_bytes(os.urandom(4), "little"))


@define("noise_into(Tensor x, *, Tensor(a!) out) -> ()")
def noise_into(x, *, out):
    out.copy_(x + int.from_bytes(os.urandom(4), "little"))


@define("foreign_draws(Tensor x) -> Tensor")
def foreign_draws(x):
    return x + random.random() + np.random.rand() + torch.rand(())


@define("lies(Tensor x, Tensor y) -> Tensor")
def lies(x, y):
    y.add_(1)
    return x + y


@define("says_nothing(Tensor x) -> ()")
def says_nothing(x):
    CALLS.append(1)


@define("skips_draws(Tensor x) -> Tensor")
def skips_draws(x):
    torch.rand(1 + int.from_bytes(os.urandom(4), "little") % 1000)
    return x + 1


@define("race(Tensor x) -> Tensor")
def race(x):
    """Add chunks in the order in which threads come by."""
    total, lock = torch.zeros(()), threading.Lock()

    def add(part):
        for _ in range(int.from_bytes(os.urandom(1), "little")):
            pass
        with lock:
            total.add_(part.sum())

    threads = [threading.Thread(target=add, args=(part,)) for part in x.chunk(8)]
    order = list(threads)
    random.SystemRandom().shuffle(order)
    for thread in order:
        thread.start()
    for thread in threads:
        thread.join()
    return total


@define("looks_around(Tensor x) -> Tensor")
def looks_around(x):
    PLACES.append(os.sched_getaffinity(0))
    return x + 1


CALLS: list[int] = []
PLACES: list[set[int]] = []
noisy = torch.ops.replaytest


def replayed(act, path: Path, times: int = 1):
    """What a function returns while its ops are executed again, the summary, and the notes."""
    session = RecordingSession(RecordingSettings(str(path), replay=times), ("test",))
    session.start()
    try:
        result = act()
    finally:
        session.finish()
    with RecordReader(path) as reader:
        summary = ReplaySummary.from_dict(reader.info.replay)
        assert summary is not None
        return result, summary, notes_of(reader.info)


def bits(value) -> bytes:
    """Digests of all tensors in a value."""
    values = value if isinstance(value, (list, tuple)) else [value]
    return digest_many([v.detach() if isinstance(v, torch.Tensor) else torch.tensor(v) for v in values])


def skipped(summary: ReplaySummary) -> dict[str, str]:
    return {item.op: item.reason for item in summary.skipped}


def test_an_op_that_does_not_repeat_is_named_with_its_line(tmp_path):
    """Site, calls, repetitions and how far the results were apart."""
    _, summary, notes = replayed(lambda: [noisy.noise(torch.ones(3)) for _ in range(4)], tmp_path / "a", 3)

    (found,) = summary.unrepeated
    assert found.op == "replaytest::noise.default"
    assert found.site.file == __file__
    assert (found.calls, found.repetitions, found.differing) == (4, 12, 12)
    assert (found.difference.elements, found.difference.total) == (3, 3)
    assert found.inputs == found.outputs == ("float32[3]",)
    assert notes == ()


def test_a_backward_op_has_the_line_of_its_forward_and_its_module(tmp_path):
    """The forward site is known when only steps are recorded."""

    class Noisy(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, gradient):
            return noisy.noise(gradient)

    class Layer(torch.nn.Module):
        def forward(self, x):
            return Noisy.apply(x)

    model = torch.nn.Sequential(torch.nn.Linear(2, 2), Layer())
    _, summary, _ = replayed(lambda: model(torch.ones(1, 2)).sum().backward(), tmp_path / "a")

    (found,) = summary.unrepeated
    assert found.module == "1"
    assert found.forward_site.line < found.site.line


@pytest.mark.parametrize(("call", "op"), [
    (noisy.noise_, "replaytest::noise_.default"),
    (lambda x: noisy.noise_into(torch.ones(3), out=x), "replaytest::noise_into.default"),
])  # fmt: skip
def test_an_op_that_writes_noise_is_found_and_its_first_value_stays(tmp_path, call, op):
    """What the script has afterwards is what the first execution wrote."""
    x = torch.ones(3)
    seen = []

    def act():
        call(x)
        seen.append(x.clone())

    _, summary, _ = replayed(act, tmp_path / "a", 2)

    assert [found.op for found in summary.unrepeated] == [op]
    assert torch.equal(seen[0], x)


def test_a_race_between_threads_is_found(tmp_path):
    """Sums in the order of arrival; ops of the threads inside the op are the op's own."""
    # What is added while the sum is large is lost: of 21 random orders some give another sum.
    x = torch.tensor([2.0**25, -(2.0**25), 1, 1, 1, 1, 1, 1])
    _, summary, _ = replayed(lambda: noisy.race(x), tmp_path / "a", 20)

    assert [found.op for found in summary.unrepeated] == ["replaytest::race.default"]


def test_generators_of_python_and_numpy_are_put_back_around_foreign_ops(tmp_path):
    """The op repeats, and what is drawn afterwards is what it would have been."""

    def act():
        random.seed(1)
        np.random.seed(2)
        torch.manual_seed(3)
        first = noisy.foreign_draws(torch.zeros(2))
        return [first, random.random(), float(np.random.rand()), torch.rand(2)]

    plain = bits(act())
    result, summary, _ = replayed(act, tmp_path / "a", 3)

    assert bits(result) == plain
    assert summary.unrepeated == ()


def test_an_op_that_writes_without_saying_so_is_left_alone(tmp_path):
    """Executed again it would write again."""
    y = torch.zeros(2)
    _, summary, _ = replayed(lambda: noisy.lies(torch.zeros(2), y), tmp_path / "a")

    assert y.tolist() == [1, 1]
    assert "without saying so" in skipped(summary)["replaytest::lies.default"]


def test_an_op_without_results_is_a_side_effect(tmp_path):
    """It is called once."""
    CALLS.clear()
    _, summary, _ = replayed(lambda: noisy.says_nothing(torch.zeros(2)), tmp_path / "a")

    assert len(CALLS) == 1
    assert "side effect" in skipped(summary)["replaytest::says_nothing.default"]


def test_an_op_that_leaves_its_generator_elsewhere_does_not_repeat(tmp_path):
    """Its results were the same."""
    _, summary, _ = replayed(lambda: noisy.skips_draws(torch.zeros(2)), tmp_path / "a", 5)

    (found,) = summary.unrepeated
    assert found.only_generator
    assert found.difference is None


def test_views_memory_that_was_not_written_and_reads_are_left_out(tmp_path):
    """They are counted by reason."""

    def act():
        x = torch.empty(4, 4)
        x.fill_(1.0)
        x.t()
        return x.view(-1)[0].item()

    _, summary, _ = replayed(act, tmp_path / "a")

    reasons = skipped(summary)
    assert reasons["aten::t.default"] == reasons["aten::view.default"] == "view"
    assert reasons["aten::empty.memory_format"] == "uninitialised memory"
    assert reasons["aten::_local_scalar_dense.default"] == "no tensor result"
    assert (summary.calls, summary.ops, summary.unrepeated) == (1, 1, ())  # fill_


def test_ops_of_other_threads_are_executed_again(tmp_path):
    """Threads that start while it records."""

    def act():
        thread = threading.Thread(target=lambda: noisy.noise(torch.ones(2)))
        thread.start()
        thread.join()

    _, summary, _ = replayed(act, tmp_path / "a")

    assert [found.op for found in summary.unrepeated] == ["replaytest::noise.default"]


def test_an_op_that_fails_does_so_once_and_as_it_would(tmp_path):
    """The script's exception is its own."""

    def act():
        with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
            torch.ones(2, 3) @ torch.ones(2, 3)
        return torch.ones(1)

    _, summary, notes = replayed(act, tmp_path / "a")

    assert summary.unrepeated == ()
    assert notes == ()


@pytest.fixture(autouse=True)
def keeps_its_cores():
    """The thread of a test is left with the cores that it had."""
    cores = getattr(os, "sched_getaffinity", lambda _: ())
    own = cores(0)
    yield
    left = cores(0)
    if left != own:
        os.sched_setaffinity(0, own)
    assert left == own


@pytest.fixture
def two_threads():
    """Kernels with two threads, for a test that needs two cores."""
    own = getattr(os, "sched_getaffinity", lambda _: ())(0)
    if len(own) < 2:
        pytest.skip("needs two cores on which a thread can be placed")
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize(("call", "op"), [
    (lambda x, index, values: x.index_put_((index,), values, accumulate=True), "aten::index_put_.default"),
    (lambda x, index, values: x.put_(index, values, accumulate=True), "aten::put_.default"),
])  # fmt: skip
def test_kernels_of_torch_that_race_are_found(tmp_path, call, op):
    """Sums of many values into few places, in the order in which the kernel's threads come by."""
    torch.manual_seed(0)
    index, values = torch.randint(0, 16, (200_000,)), torch.rand(200_000)
    _, summary, _ = replayed(lambda: call(torch.zeros(16), index, values), tmp_path / "a", 40)

    assert [found.op for found in summary.unrepeated] == [op]


@pytest.mark.usefixtures("two_threads")
def test_inputs_are_described_as_they_were_before_the_op(tmp_path):
    """An `out` that the op makes larger."""
    torch.manual_seed(0)
    index, values, out = torch.randint(0, 16, (200_000,)), torch.rand(200_000), torch.empty(0)

    def act():
        torch.ops.aten.index_put.out(torch.zeros(16), [index], values, True, out=out)

    _, summary, _ = replayed(act, tmp_path / "a", 40)

    (found,) = summary.unrepeated
    assert found.inputs == ("float32[16]", "int64[200000]", "float32[200000]", "float32[0]")
    assert found.outputs == ("float32[16]",)


@pytest.mark.parametrize("make", [
    lambda: torch.randn(40),
    lambda: torch.randn(40)[1:],
    lambda: torch.randn(40)[16:],
    lambda: torch.randn(40)[::3],
    lambda: torch.randn(5, 8).t(),
    lambda: torch.randn(5).as_strided((3, 2), (1, 1)),
    lambda: torch.randn(2, 3, 4, 4).to(memory_format=torch.channels_last),
    lambda: torch.from_numpy(np.arange(43, dtype=np.uint8)[3:]),
    lambda: torch.randn(3, dtype=torch.complex64).conj(),
])  # fmt: skip
def test_a_copy_has_the_layout_and_the_alignment_of_what_it_stands_for(make):
    """A kernel may take another way through memory that is laid out in another way."""
    tensor = make()
    before = digest_many([tensor])
    copies = Copies(torch, traits_of(torch.ops.aten.mul_.Tensor), ((tensor, tensor), {}))
    tensor[0] = 0  # what the op writes
    for last in (False, True):
        (first, second), _ = copies.restored(last=last)
        assert first is second
        assert first.stride() == tensor.stride()
        assert first.is_conj() == tensor.is_conj()
        assert first.data_ptr() % 64 == tensor.data_ptr() % 64
        assert digest_many([first]) == before
        first[0] = 7


@pytest.mark.usefixtures("two_threads")
def test_a_repetition_runs_on_another_core_and_the_thread_keeps_its_cores():
    """The first few of each op, more of those known to race; each on the next core."""
    cores, own = Cores(torch), os.sched_getaffinity(0)

    def place(op):
        with cores.another(op):
            return frozenset(os.sched_getaffinity(0))

    plain = [place("aten::add") for _ in range(4)]
    suspect = [place("aten::index_put_") for _ in range(70)]

    assert len(plain[0]) == len(plain[1]) == 1
    assert plain[0] != plain[1]
    assert plain[2] == plain[3] == own
    assert [len(where) for where in suspect] == [1] * 64 + [len(own)] * 6
    with pytest.raises(ValueError, match="x"), cores.another("aten::mul"):
        raise ValueError("x")
    assert os.sched_getaffinity(0) == own
    torch.set_num_threads(1)
    assert place("aten::sub") == own


@pytest.mark.usefixtures("two_threads")
def test_an_op_that_is_not_torchs_own_stays_where_it_is(tmp_path):
    """Threads that it starts would stay on one core."""
    own = os.sched_getaffinity(0)
    PLACES.clear()
    replayed(lambda: noisy.looks_around(torch.ones(1)), tmp_path / "a")

    first, again = PLACES
    assert first == again == own


def test_modes_of_the_script_see_each_operation_once(tmp_path):
    """A counter of operations counts what the script called."""
    with FlopCounterMode(display=False) as outside:

        def act():
            with FlopCounterMode(display=False) as inside:
                torch.ones(2, 3) @ torch.ones(3, 4)
            return inside.get_total_flops()

        inside, summary, _ = replayed(act, tmp_path / "a")

    assert inside == outside.get_total_flops() == 2 * 2 * 3 * 4
    assert "aten::mm.default" not in skipped(summary)


def optimizer_state(**options):
    parameters = [torch.nn.Parameter(torch.linspace(0, 1, 5)), torch.nn.Parameter(torch.ones(2, 2))]
    optimizer = torch.optim.Adam(parameters, lr=0.1, **options)
    for _ in range(2):
        optimizer.zero_grad()
        sum((p * p).sum() for p in parameters).backward()
        optimizer.step()
    return [*parameters, *(v for p in parameters for v in optimizer.state[p].values())]


def overlapping_copy():
    x = torch.arange(10.0)
    x[1:].sub_(x[:-1].clone())
    x[::2].mul_(x[1::2])
    return x


def double_memory():
    x = torch.arange(6.0)
    expanded = x.as_strided((3, 4), (1, 1))  # elements overlap
    torch.cumsum(expanded, 1, out=torch.empty(3, 4))
    x.add_(x)
    return x, expanded.sum(0), torch.add(x, 1, out=x)


def out_arguments():
    grown, other = torch.empty(0), torch.zeros(4, 3).t()
    torch.add(torch.ones(3, 4), 1, out=grown)
    torch.mul(torch.ones(3, 4), torch.arange(4.0), out=other)
    return grown, other, torch.max(grown, 0, out=(torch.empty(4), torch.empty(4, dtype=torch.int64)))[1]


def complex_and_conjugate():
    x = torch.complex(torch.arange(4.0), torch.ones(4))
    y = x.conj()
    y.mul_(2 + 1j)
    torch.view_as_real(x)[:, 1].add_(3)
    return x, y.resolve_conj(), x.imag.neg()


def negative_views():
    x = torch.complex(torch.arange(4.0), torch.ones(4))
    x.conj().imag.mul_(3.0)
    return x


def sparse_in_place():
    x = torch.sparse_coo_tensor(torch.tensor([[0, 1, 1], [2, 0, 0]]), torch.ones(3), (2, 3))
    x = x.coalesce()
    x.mul_(2.0)
    return x.to_dense(), torch.sparse.mm(x, torch.ones(3, 2)), x.to_sparse_csr().values()


def quantized():
    x = torch.quantize_per_tensor(torch.arange(4.0), 0.1, 10, torch.quint8)
    return x.int_repr(), x.clone().copy_(x).dequantize()


def empties():
    x = torch.zeros(0, 3)
    x.add_(1).mul_(2)
    return x, torch.cat([x, x]), x.sum(), torch.nn.functional.linear(x, torch.ones(2, 3))


def random_ops():
    generator = torch.Generator().manual_seed(5)
    drawn = [
        torch.randn(3),
        torch.nn.functional.dropout(torch.ones(40), 0.5),
        torch.randperm(9, generator=generator),
        torch.empty(4).uniform_(generator=generator),
        torch.multinomial(torch.rand(5), 2),
        torch.nn.functional.rrelu(torch.linspace(-3, 3, 7), training=True),
    ]
    return [*drawn, generator.get_state(), torch.get_rng_state()]


def norm_and_dropout():
    model = torch.nn.Sequential(
        torch.nn.Linear(4, 8),
        torch.nn.BatchNorm1d(8),
        torch.nn.Dropout(0.5),
        torch.nn.LSTM(8, 5, 2, dropout=0.3),
    )
    output, _ = model(torch.randn(6, 4))
    output.square().sum().backward()
    return [*model.state_dict().values(), *(p.grad for p in model.parameters()), torch.get_rng_state()]


def checkpointed():
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 2))
    x = torch.randn(3, 4, requires_grad=True)
    checkpoint(model, x, use_reentrant=False).sum().backward()
    checkpoint(model, x, use_reentrant=True).sum().backward()
    return x.grad, torch.get_rng_state()


def autocast():
    model = torch.nn.Linear(8, 8)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = model(torch.randn(4, 8)).relu().sum()
    loss.backward()
    return model.weight.grad, loss


def functional_transforms():
    def loss(w, x):
        return (torch.nn.functional.dropout(x @ w, 0.5) ** 2).sum()

    w, x = torch.randn(3), torch.randn(5, 3)
    each = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0), randomness="different")(w, x)
    hessian = torch.func.hessian(lambda w: (x @ w).sin().sum())(w)
    in_place = torch.func.vmap(lambda row: row.clone().add_(1).mul_(row))(x)
    return each, hessian, in_place, torch.func.jvp(torch.sin, (w,), (w,))[1], torch.get_rng_state()


class Marked(torch.Tensor):
    """A subclass without a dispatch of its own."""


def subclasses():
    x = torch.randn(4).as_subclass(Marked)
    return (x + 1).mul_(2).as_subclass(torch.Tensor)


def nested_and_masked():
    nested = torch.nested.nested_tensor([torch.ones(2, 3), torch.zeros(1, 3)], layout=torch.jagged)
    return (nested * 2).values()


def foreach():
    tensors = [torch.ones(2), torch.arange(3.0)]
    torch._foreach_add_(tensors, 1.0)
    torch._foreach_addcmul_(tensors, tensors, tensors, 0.5)
    return [*tensors, *torch._foreach_norm(tensors)]


def unaligned():
    raw = np.arange(65, dtype=np.uint8)
    x = torch.from_numpy(np.frombuffer(raw.data, dtype=np.int32, offset=4, count=15).copy())
    return x[1:].add_(x[:-1].clone()), torch.from_numpy(raw)[3:].mul_(2)


def inference():
    with torch.inference_mode():
        x = torch.ones(3)
        x.add_(2).mul_(x)
        y = torch.cat([x, x]).sigmoid_()
    return x.clone(), y.clone()


@pytest.mark.parametrize("act", [
    overlapping_copy, double_memory, out_arguments, complex_and_conjugate, negative_views, sparse_in_place,
    quantized, empties, random_ops, norm_and_dropout, checkpointed, autocast, functional_transforms,
    subclasses, nested_and_masked, foreach, unaligned, inference,
    optimizer_state, lambda: optimizer_state(foreach=True), lambda: optimizer_state(fused=True),
])  # fmt: skip
@pytest.mark.filterwarnings("ignore")
def test_numbers_are_those_of_the_script_alone(tmp_path, act):
    """Results and generators, bit for bit, and nothing of torch's CPU kernels fails to repeat."""
    torch.manual_seed(7)
    plain = bits(act())
    after = torch.get_rng_state()
    torch.manual_seed(7)
    result, summary, notes = replayed(act, tmp_path / "a", 2)

    assert bits(result) == plain
    assert torch.equal(torch.get_rng_state(), after)
    assert [found.op for found in summary.unrepeated] == []
    assert [item for item in summary.skipped if item.reason == SkipReason.FAILED] == []
    assert notes == ()
    assert summary.calls > 0


FULL = ReplaySummary(
    times=2,
    calls=12,
    ops=3,
    steps=4,
    unrepeated=(
        Unrepeated(
            "aten::x.default", "m", Site("a.py", 3, "f"), None, 1, 2, 4, 1, ("float32[3]",), ("float32[3]",),
            difference=Difference(1, 3, 2, 0.5),
        ),
    ),
    skipped=(
        Skipped(SkipReason.VIEW, "aten::t.default", 9),
        Skipped(SkipReason.FAILED, "mine::op.default", 2, "RuntimeError"),
        Skipped("a reason of another version", "aten::x.default", 1),
    ),
)  # fmt: skip


@pytest.mark.parametrize(("op", "device", "words"), [
    ("aten::put_.default", "cpu", "`torch.use_deterministic_algorithms(True)`"),
    ("aten::index_put.default", "cpu", "`torch.use_deterministic_algorithms(True)`"),
    ("aten::histc.default", "cuda", "`samebits run --deterministic`"),
    ("aten::resize_.default", "cpu", ""),
    ("aten::add.Tensor", "cpu", ""),
    ("mine::put_.default", "cpu", ""),
])  # fmt: skip
def test_what_is_known_to_help_is_said(op, device, words):
    """Nothing is said of an op of which nothing is known."""
    text = remedy_for(op, device)

    assert words in text
    assert bool(text) == bool(words)


def test_a_summary_is_read_back_as_it_was():
    """All fields, through JSON; a known reason is a member again, any other stays as it is."""
    found = ReplaySummary.from_dict(json.loads(json.dumps(FULL.to_dict())))

    assert found == FULL
    assert [type(item.reason) for item in found.skipped] == [SkipReason, SkipReason, str]


def test_the_stored_reasons_are_those_of_earlier_records():
    """Records hold these words."""
    assert [item["reason"] for item in FULL.to_dict()["skipped"]] == [
        "view",
        "error when executed again (RuntimeError)",
        "a reason of another version",
    ]
    assert set(FULL.to_dict()["skipped"][1]) == {"reason", "op", "calls"}
    assert {reason.value for reason in SkipReason} == {
        "view", "uninitialised memory", "no tensor result", "range of the profiler",
        "side effect outside tensors", "operator that runs other operators",
        "an argument that is no plain value", "tensor without memory of its own", "CUDA graph capture",
        "generator that cannot be put back", "writes to an argument without saying so",
        "result that cannot be read", "it writes to memory that is read with its sign changed",
        "error when executed again",
    }  # fmt: skip


@pytest.mark.parametrize("change", [
    {"times": -1}, {"calls": "12"}, {"unrepeated": None}, {"unrepeated": [{}]}, {"skipped": [{"reason": 3}]},
    {"skipped": [1]}, {"steps": True},
])  # fmt: skip
def test_a_forged_summary_is_none(change):
    """A record is not trusted."""
    assert ReplaySummary.from_dict({**FULL.to_dict(), **change}) is None
    assert ReplaySummary.from_dict({}) is None
