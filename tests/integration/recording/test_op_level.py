"""What op-level recording sees: every dispatched op with its data flow, in this process."""

from __future__ import annotations

import contextlib
import threading

import pytest

torch = pytest.importorskip("torch")

from samebits.recording.session import RecordingSession, record  # noqa: E402
from samebits.recording.settings import RecordingSettings  # noqa: E402
from samebits.records.events import NO_WRITER  # noqa: E402
from samebits.records.notes import Note, NoteCode  # noqa: E402
from samebits.records.reader import RecordReader  # noqa: E402


def ops_of(path):
    with RecordReader(path) as reader:
        return list(reader.events(kinds=("op",)))


def roles(event, role):
    return [
        (i, d, link)
        for i, d, link in zip(event.tensors, event.digests, event.links, strict=True)
        if i.role == role
    ]


def test_an_op_has_inputs_outputs_arguments_and_a_site(tmp_path):
    """Scalars are text; the site is this file."""
    a = torch.ones(2, 3)
    with record(tmp_path / "a.sbr", level="op") as path:
        torch.softmax(a, dim=1)
    (op,) = ops_of(path)

    assert op.op == "aten::_softmax.default"
    assert op.arguments == "1, False"
    assert op.site.file == __file__
    assert [i.shape for i in op.tensors] == [(2, 3), (2, 3)]


def test_an_output_is_linked_to_the_op_that_made_it(tmp_path):
    """The second op's input was written by the first."""
    a = torch.ones(2)
    with record(tmp_path / "a.sbr", level="op") as path:
        (a + 1) * 2
    add, mul = ops_of(path)

    assert roles(add, "in")[0][2].writer == NO_WRITER
    assert roles(mul, "in")[0][2].writer == add.seq
    assert roles(mul, "in")[0][1] == roles(add, "out")[0][1]


def test_an_in_place_op_shows_both_values_and_continues_the_chain(tmp_path):
    """`in` is before, `out` after, on the same memory; the next reader sees the last writer."""
    with record(tmp_path / "a.sbr", level="op") as path:
        a = torch.zeros(3)
        a.add_(1)
        a[:2].mul_(3)
        a + 0
    zeros, add, _, mul, last = ops_of(path)
    before, after = roles(add, "in")[0], roles(add, "out")[0]

    assert before[1] != after[1]
    assert before[2].memory == after[2].memory
    assert after[2].writer == zeros.seq
    assert roles(mul, "in")[0][2].writer == add.seq
    assert roles(last, "in")[0][2].writer == mul.seq


def test_foreach_ops_that_return_nothing_show_what_they_wrote(tmp_path):
    """Lists of mutated tensors are outputs."""
    tensors = [torch.ones(2), torch.ones(3)]
    with record(tmp_path / "a.sbr", level="op") as path:
        torch._foreach_add_(tensors, 1.0)
    (op,) = ops_of(path)

    assert len(roles(op, "in")) == len(roles(op, "out")) == 2


def test_a_tensor_that_is_resized_is_described_as_it_was_and_as_it_is(tmp_path):
    """Shapes before the op and after it."""
    values = torch.ones(2)
    with record(tmp_path / "a.sbr", level="op") as path:
        values.resize_(5)
    (op,) = ops_of(path)

    assert [i.shape for i in op.tensors] == [(2,), (5,)]


def test_batch_norm_statistics_count_as_written_although_the_schema_hides_it(tmp_path):
    """Running statistics are outputs of the op that updates them."""
    layer = torch.nn.BatchNorm1d(3)
    with record(tmp_path / "a.sbr", level="op") as path:
        layer(torch.randn(4, 3))
    norm = next(e for e in ops_of(path) if "batch_norm" in e.op)

    assert len(roles(norm, "out")) == 3 + 2


def test_random_ops_show_the_state_of_their_generator(tmp_path):
    """The same seed gives the same state digest; a draw changes it."""
    with record(tmp_path / "a.sbr", level="op") as path:
        torch.manual_seed(1)
        torch.rand(3)
        torch.rand(3)
        torch.manual_seed(1)
        torch.rand(3)
    first, second, again = (roles(e, "rng")[0][1] for e in ops_of(path))

    assert first == again != second


def test_an_own_generator_is_the_one_that_counts(tmp_path):
    """`generator=` is digested, not the default generator."""
    own = torch.Generator()
    with record(tmp_path / "a.sbr", level="op") as path:
        torch.rand(3, generator=own.manual_seed(5))
        torch.manual_seed(9)
        torch.rand(3, generator=own.manual_seed(5))
    first, second = (roles(e, "rng")[0][1] for e in ops_of(path))

    assert first == second


def test_backward_ops_know_their_forward_site_and_module(tmp_path):
    """The line that made a gradient is named."""
    layer = torch.nn.Sequential(torch.nn.Linear(2, 2))
    with record(tmp_path / "a.sbr", level="op") as path:
        hidden = layer(torch.ones(1, 2))
        loss = hidden.exp().sum()
        loss.backward()
    ops = ops_of(path)
    forward = next(e for e in ops if e.op.startswith("aten::exp"))
    backward = [e for e in ops if e.forward_site == forward.site]
    product = next(e for e in ops if e.op == "aten::mm.default")

    assert [e.op for e in backward if e.op.startswith("aten::mul")]
    assert product.module == "0"
    assert product.forward_site is not None
    assert product.forward_site != product.site


def test_module_paths_are_those_of_named_modules(tmp_path):
    """Nested modules give dotted paths."""
    model = torch.nn.Sequential(torch.nn.Sequential(torch.nn.Linear(2, 2)), torch.nn.ReLU())
    with record(tmp_path / "a.sbr", level="op") as path:
        model(torch.ones(1, 2))
    modules = {e.op: e.module for e in ops_of(path)}

    assert modules["aten::addmm.default"] == "0.0"
    assert modules["aten::relu.default"] == "1"


def test_threads_are_recorded_under_their_names(tmp_path):
    """Ops of a thread that the script starts are events of that thread."""
    with record(tmp_path / "a.sbr", level="op") as path:
        thread = threading.Thread(target=lambda: torch.ones(2) + 1, name="worker")
        thread.start()
        thread.join()
        torch.ones(1)

    assert [e.thread for e in ops_of(path)] == ["worker", "worker", ""]


def test_checkpointed_modules_are_recomputed_with_their_own_site(tmp_path):
    """Both kinds of `torch.utils.checkpoint` run under recording with equal gradients."""
    from torch.utils.checkpoint import checkpoint

    layer = torch.nn.Linear(3, 3)
    x = torch.ones(2, 3, requires_grad=True)

    def gradients():
        layer.zero_grad()
        for reentrant in (True, False):
            checkpoint(lambda t: layer(t).tanh(), x, use_reentrant=reentrant).sum().backward()
        return layer.weight.grad.clone()

    expected = gradients()
    with record(tmp_path / "a.sbr", level="op") as path:
        found = gradients()

    assert torch.equal(found, expected)
    assert len([e for e in ops_of(path) if e.op.startswith("aten::tanh.")]) == 4


def test_custom_functions_show_the_lines_of_their_backward(tmp_path):
    """The site of an op inside a user's `backward` is in that `backward`."""

    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return grad * 2 * x

    x = torch.ones(2, requires_grad=True)
    with record(tmp_path / "a.sbr", level="op") as path:
        Square.apply(x).sum().backward()

    assert "backward" in {e.site.function.rpartition(".")[2] for e in ops_of(path)}


def test_the_ops_inside_higher_order_ops_are_recorded(tmp_path):
    """A dispatch mode gets `torch.cond` as one call, for which torch has no rule."""
    x = torch.ones(2, requires_grad=True)

    def choose(pred):
        return torch.ops.higher_order.cond(pred, lambda t: t.exp(), lambda t: t.tanh(), (x.detach(),))

    expected = choose(torch.tensor(True))
    with record(tmp_path / "a.sbr", level="op") as path:
        found = choose(torch.tensor(True))
        count, y = torch.ops.higher_order.while_loop(
            lambda i, _: i < 3, lambda i, t: (i + 1, t * 2), (torch.tensor(0), x.detach()), ()
        )

    assert torch.equal(found, expected)
    assert (int(count), y.tolist()) == (3, [8, 8])
    ops = [e.op for e in ops_of(path)]
    assert ops.count("aten::exp.default") == 1
    assert "aten::tanh.default" not in ops
    assert ops.count("aten::mul.Tensor") == 3


@pytest.mark.parametrize("other", [False, True])
@pytest.mark.filterwarnings("ignore")
def test_flex_attention_is_left_to_another_mode_that_may_have_a_rule_for_it(tmp_path, monkeypatch, other):
    """What such a mode sees must not depend on whether a recording goes on."""
    import torch.nn.attention.flex_attention as flex
    from torch.utils._python_dispatch import TorchDispatchMode

    seen = []

    class Log(TorchDispatchMode):
        supports_higher_order_operators = True

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    monkeypatch.setattr(flex, "_FLEX_ATTENTION_DISABLE_COMPILE_DEBUG", True)
    x = torch.ones(1, 1, 4, 2)
    expected = flex.flex_attention(x, x, x)
    with Log() if other else contextlib.nullcontext(), record(tmp_path / "a.sbr", level="op") as path:
        found = flex.flex_attention(x, x, x)
    assert torch.equal(found, expected)
    assert ("flex_attention" in seen) is other
    assert ("aten::matmul.default" in {e.op for e in ops_of(path)}) is not other


@pytest.mark.parametrize("settings", [{"level": "op"}, {"replay": 1}])
def test_compiled_code_is_recorded_uncompiled_and_stays_compiled(tmp_path, settings):
    """The compiler leaves code alone for ever that ran while a dispatch mode was on."""
    calls = []

    def backend(graph, _):
        return lambda *given: (calls.append(None), graph.forward(*given))[1]

    compiled = torch.compile(lambda x: x.exp() + 1, backend=backend)
    compiled(torch.ones(3))
    session = RecordingSession(RecordingSettings(record=str(tmp_path / "a.sbr"), **settings), ("test",))
    session.start()
    try:
        compiled(torch.ones(3))
    finally:
        session.finish()
    assert len(calls) == 1
    compiled(torch.ones(3))

    assert len(calls) == 2
    purpose = "record" if "level" in settings else "replay"
    with RecordReader(tmp_path / "a.sbr") as reader:
        assert reader.info.notes == (Note.of(NoteCode.COMPILE_OFF, purpose),)
    if "level" in settings:
        assert "aten::exp.default" in [e.op for e in ops_of(tmp_path / "a.sbr")]


@pytest.mark.parametrize(
    "work",
    [
        lambda: torch.sparse_coo_tensor([[0, 1]], [1.0, 2.0], (3,)).to_dense() + 1,
        lambda: torch.ones(3, dtype=torch.complex64).conj() * 1j,
        lambda: torch.ones(3, dtype=torch.bfloat16).float().to(torch.float16),
        lambda: torch.empty(0).sum() + torch.tensor(3.0),
        lambda: torch.ones(3, 0) @ torch.ones(0, 2),
        lambda: torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.quint8).dequantize(),
        lambda: torch.ones(2, device="meta") + 1,
        lambda: torch.func.vmap(lambda t: t * 2)(torch.ones(3, 2)),
        lambda: torch.func.grad(lambda t: (t**2).sum())(torch.ones(3)),
        lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]) * 2,
        lambda: torch.nn.functional.scaled_dot_product_attention(*[torch.ones(1, 1, 4, 8)] * 3),
        lambda: torch.ones(4, 4).t().contiguous(memory_format=torch.contiguous_format).expand(2, 4, 4) * 2,
        lambda: torch.stft(torch.ones(64), 16, return_complex=True),
        lambda: torch.linalg.svd(torch.eye(3)),
        lambda: torch.stack([torch.tensor(float("nan")), torch.tensor(-0.0)]),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_unusual_tensors_are_recorded_without_disturbing_the_script(tmp_path, work):
    """Sparse, complex, half, empty, quantized, meta, functorch, nested, attention, expanded."""
    with record(tmp_path / "a.sbr", level="op") as path:
        work()

    assert ops_of(path)


def test_tensor_subclasses_work(tmp_path):
    """A subclass keeps its type through recorded ops."""

    class Named(torch.Tensor):
        pass

    value = torch.ones(3).as_subclass(Named)
    with record(tmp_path / "a.sbr", level="op") as path:
        result = value * 2

    assert type(result) is Named
    assert len(ops_of(path)) >= 1


def test_recording_an_op_that_raises_leaves_the_error_alone(tmp_path):
    """The user's exception arrives as it is, and the record is closed."""
    with (
        pytest.raises(RuntimeError, match="shapes cannot be multiplied"),
        record(tmp_path / "a.sbr", level="op"),
    ):
        torch.ones(2, 3) @ torch.ones(2, 3)
    with RecordReader(tmp_path / "a.sbr") as reader:
        assert reader.info.status == "failed"


def test_the_same_work_gives_the_same_events(tmp_path):
    """No address, clock or order of threads enters what is compared."""

    def work():
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Dropout(0.5))
        optimizer = torch.optim.AdamW(model.parameters())
        for _ in range(2):
            optimizer.zero_grad()
            model(torch.ones(2, 4)).sum().backward()
            optimizer.step()

    found = []
    for name in ("a.sbr", "b.sbr"):
        with record(tmp_path / name, level="op") as path:
            work()
        found.append([(e.op, e.module, e.arguments, e.tensors, e.links) for e in ops_of(path)])

    assert found[0] == found[1]


def failing_step(optimizer):
    def closure():
        raise ValueError

    with pytest.raises(ValueError):
        optimizer.step(closure)


def test_a_generator_has_the_name_of_its_source(tmp_path):
    """One that was given to the op has none; ops of one shape keep apart."""
    with record(tmp_path / "a.sbr", level="op") as path:
        torch.rand(2)
        torch.rand(2, generator=torch.Generator())
    rands = [op for op in ops_of(path) if op.op.startswith("aten::rand.")]

    assert [roles(op, "rng")[0][0].name for op in rands] == ["torch", "given"]


def test_ops_after_a_step_that_raised_have_their_own_site(tmp_path):
    """What torch's optimizer code runs between steps is not at the line of the failed step."""
    weight = torch.ones(2, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.1)
    with record(tmp_path / "a.sbr", level="op") as path:
        weight.sum().backward()
        failing_step(optimizer)
        optimizer.zero_grad(set_to_none=False)
        torch.optim.Adagrad([weight])
    found = {op.op: op.site.function for op in ops_of(path)}

    here = test_ops_after_a_step_that_raised_have_their_own_site.__name__
    assert found["aten::zero_.default"] == here
    assert found["aten::full_like.default"] == here


def test_a_step_that_raised_is_not_in_progress_any_more(tmp_path):
    """The next steps find their site once, as if it had not been."""
    weight = torch.ones(2, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.1)
    session = RecordingSession(RecordingSettings(record=str(tmp_path / "a.sbr"), level="op"), ("test",))
    session.start()
    known = []
    try:
        failing_step(optimizer)
        thread = threading.Thread(target=failing_step, args=(optimizer,))
        thread.start()
        thread.join()
        for _ in range(2):
            optimizer.step(lambda: known.append(session.recorder.sites.optimizer_site))
    finally:
        session.finish()

    assert None not in known
    assert len(known) == 2
