"""The steps of an LSTM as one op: the bits of single ops, everywhere, and what is left to torch."""

from __future__ import annotations

import copy
import os
import random
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.func import functional_call, grad, jvp, vmap
from torch.nn.utils.rnn import pack_padded_sequence
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint
from ways import Passing, digest_within

import samebits
from samebits._torch.dispatch_key import can_register
from samebits._torch.kernel_overrides import can_override
from samebits.portable import lstm_layers
from samebits.portable._mode import DispatchMode
from samebits.portable._registration import Registration
from samebits.portable.backends import cpu_backend
from samebits.portable.backends.library import load
from samebits.portable.backends.reference import ReferenceBackend
from samebits.portable.kernels import lstm
from samebits.portable.lstm_ops import lstm_ops

if TYPE_CHECKING:
    from collections.abc import Callable

SEEDS = int(os.environ.get("SAMEBITS_TEST_SEEDS", "1"))
pytestmark = [
    pytest.mark.skipif(not can_override(), reason="this torch keeps its own way"),
    pytest.mark.usefixtures("unaudited"),
    pytest.mark.filterwarnings("ignore:dropout option adds dropout"),
]
Run = "Callable[[], list[Tensor]]"


class Seeing(TorchDispatchMode):
    """Notes the ops of samebits."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def __torch_dispatch__(self, op, types, args=(), kwargs=None):
        if op.namespace == "samebits":
            self.seen.append(str(op))
        return op(*args, **(kwargs or {}))


def by_single_ops(run: Callable[[], Any]) -> Any:
    """What a function returns where torch makes an LSTM of its ops."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lstm_layers, "_is_ours", lambda _: False)
        return run()


def digests(found: Any) -> list[str]:
    return [str(samebits.digest(each.detach())) if isinstance(each, Tensor) else str(each) for each in found]


def in_both_ways(run: Callable[[], Any]) -> tuple[list[str], list[str]]:
    """The digests of what a function returns in portable mode: by steps at once, by single ops."""
    with samebits.portable():
        return digests(run()), digests(by_single_ops(run))


@dataclass(frozen=True)
class Case:
    """A layer and how it is called."""

    batch: int = 3
    size: int = 5
    steps: int = 4
    inputs: int = 3
    layers: int = 1
    both_ways: bool = False
    bias: bool = True
    dropout: float = 0.0
    batch_first: bool = False
    dtype: torch.dtype = torch.float32
    state: str = "none"  # or plain, wanted, cell
    used: str = "out"  # or last, cell, both, all, part, states
    wants_x: bool = True
    frozen: bool = False
    scattered: bool = False

    def module(self) -> nn.LSTM:
        """Return the layer, always with the same weights."""
        torch.manual_seed(3)
        layer = nn.LSTM(
            self.inputs, self.size, self.layers, bias=self.bias, batch_first=self.batch_first,
            dropout=self.dropout, bidirectional=self.both_ways,
        )  # fmt: skip
        return layer.to(self.dtype).requires_grad_(not self.frozen)

    def x(self) -> Tensor:
        """Return inputs."""
        sizes = [self.steps, self.batch, self.inputs]
        if self.batch_first:
            sizes[:2] = sizes[1::-1]
        given = torch.randn(sizes[::-1]).permute(2, 1, 0) if self.scattered else torch.randn(sizes)
        return given.to(self.dtype).requires_grad_(self.wants_x)

    def first(self) -> list[Tensor]:
        """Return the first states, if any are given."""
        if self.state == "none":
            return []
        sizes = (self.layers * (1 + self.both_ways), self.batch, self.size)
        out, cell = torch.randn(2, *sizes).to(self.dtype)
        return [
            out.clone().requires_grad_(self.state == "wanted"),
            cell.clone().requires_grad_(self.state in {"wanted", "cell"}),
        ]

    def outcome(self, out: Tensor, last: Tensor, cell: Tensor) -> list[Tensor]:
        """Return what of the results is used."""
        choices = {
            "out": [out], "last": [last], "cell": [cell], "both": [out, last], "all": [out, last, cell],
            "part": [out[:, -1]], "states": [last[-1], cell[0]],
        }  # fmt: skip
        return [each for each in choices[self.used] if each.requires_grad]

    def run(self) -> list[Tensor]:
        """Results, and gradients of all that has some."""
        layer, x, first = self.module(), self.x(), self.first()
        results = layer(x, tuple(first) or None)
        results = [results[0], *results[1]]
        asked = [each for each in (x, *first, *layer.parameters()) if each.requires_grad]
        outcome = self.outcome(*results)
        if not outcome:
            return results
        slopes = [torch.randn(each.shape, dtype=each.dtype) for each in outcome]
        return [*results, *torch.autograd.grad(outcome, asked, slopes, allow_unused=True)]


def drawn(draw: random.Random) -> Case:
    pick = draw.choice
    return Case(
        batch=pick((1, 2, 3, 31, 64, 127, 128, 129, 130)),
        size=pick((1, 2, 7, 16, 17, 49)),
        steps=pick((1, 2, 5, 9)),
        inputs=pick((1, 5, 20)),
        layers=pick((1, 1, 2, 3)),
        both_ways=draw.random() < 0.4,
        bias=draw.random() < 0.7,
        dropout=pick((0.0, 0.0, 0.3)),
        batch_first=draw.random() < 0.5,
        dtype=pick((torch.float32, torch.float32, torch.float64)),
        state=pick(("none", "plain", "wanted", "cell")),
        used=pick(("out", "last", "cell", "both", "all", "part", "states")),
        wants_x=draw.random() < 0.6,
        frozen=draw.random() < 0.15,
        scattered=draw.random() < 0.3,
    )


@pytest.mark.parametrize("seed", range(40 * SEEDS))
def test_they_have_the_bits_of_single_ops(seed: int) -> None:
    case = drawn(random.Random(seed))
    ours, single = in_both_ways(case.run)
    assert ours == single, case


@pytest.mark.parametrize(
    "case",
    [
        Case(batch=64, size=256, steps=3, batch_first=True, used="part"),
        Case(batch=1, size=256, steps=3),
        Case(batch=1, size=256, steps=8),  # the weight is packed
        Case(batch=300, size=16, steps=2, layers=2),
        Case(batch=300, size=3, steps=2, dtype=torch.float64, used="all"),
        Case(batch=100, size=8, steps=11),  # a panel of the weight's gradient ends with a step
        Case(batch=3, size=1, steps=1),
        Case(batch=17, size=40, steps=6, layers=3, both_ways=True, dropout=0.5),
    ],
)
def test_sizes_at_the_ends_of_blocks(case: Case) -> None:
    ours, single = in_both_ways(case.run)
    assert ours == single


@pytest.mark.parametrize("used", ["out", "last", "cell", "both", "all", "part", "states"])
@pytest.mark.parametrize("state", ["none", "plain", "wanted", "cell"])
def test_any_part_of_the_results_may_be_used(used: str, state: str) -> None:
    ours, single = in_both_ways(Case(used=used, state=state, both_ways=True).run)
    assert ours == single


@pytest.mark.parametrize("used", ["out", "last", "cell", "all"])
def test_zeros_have_the_sign_of_single_ops(used: str) -> None:
    """Where there is no gradient nothing is added: a zero added to -0 would be +0."""

    def run() -> list[Tensor]:
        layer, x = nn.LSTM(2, 3), torch.zeros(4, 2, 2, requires_grad=True)
        with torch.no_grad():
            for weight in layer.parameters():
                weight.zero_()
        first = torch.zeros(1, 2, 3, requires_grad=True), torch.full((1, 2, 3), -0.0, requires_grad=True)
        out, (last, cell) = layer(x, first)
        outcome = {"out": [out], "last": [last], "cell": [cell], "all": [out, last, cell]}[used]
        slopes = [torch.full_like(each, -0.0) for each in outcome]
        return [out, last, cell, *torch.autograd.grad(outcome, [x, *first, *layer.parameters()], slopes)]

    ours, single = in_both_ways(run)
    assert ours == single


def test_values_that_are_not_finite_stay_so() -> None:
    def run() -> list[Tensor]:
        torch.manual_seed(1)
        layer, x = nn.LSTM(1, 3), torch.tensor([3e38, -3e38, torch.inf, torch.nan]).repeat(3, 1).unsqueeze(-1)
        out, (last, cell) = layer(x)
        found = [out, last, cell, *torch.autograd.grad(out.sum(), list(layer.parameters()))]
        return [torch.where(each.isnan(), torch.nan, each) for each in found]

    ours, single = in_both_ways(run)
    assert ours == single


CASE = Case(batch=20, size=17, steps=5, layers=2, both_ways=True, state="wanted", used="all", dropout=0.2)


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize(
    "case",
    [
        CASE,
        Case(batch=2, size=300, steps=3),
        Case(batch=1, size=400, steps=9),
        Case(batch=130, size=33, steps=3),
    ],
)
def test_instruction_sets_and_threads_give_the_same_bits(isa: str, threads: int, case: Case) -> None:
    kernels = load()
    assert kernels is not None
    try:
        kernels.set_threads(threads)
        with samebits.portable():
            ours = digests(case.run())
    finally:
        kernels.follow_torch()
    kernels.select("")
    with samebits.portable():
        assert ours == digests(case.run()), isa


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("used", [(0,), (1,), (2,), (0, 1, 2)])
@pytest.mark.parametrize("batch", [2, 130])
@pytest.mark.skipif(load() is None, reason="there are no C kernels")
def test_the_reference_gives_the_same_bits(
    monkeypatch: pytest.MonkeyPatch, batch: int, used: tuple[int, ...], *, reverse: bool
) -> None:
    torch.manual_seed(1)
    x, states = torch.randn(3, batch, 12), torch.randn(2, batch, 3)
    layer = lstm.Layer(torch.randn(12, 3), torch.randn(12), states[0], states[1], reverse)
    given = [torch.randn(3, batch, 3), *torch.randn(2, batch, 3)]
    slopes = lstm.Slopes(*(each if at in used else None for at, each in enumerate(given)))

    def found() -> list[Tensor | None]:
        out, course = lstm.run(x, layer, keeps=True)
        short = lstm.run(x, layer._replace(bias=None), keeps=False)
        gradients = lstm.gradients(layer, course, slopes, (True, True, True))
        assert gradients is not None
        return [out, *course, short[0], *short[1], *gradients[:5]]

    assert cpu_backend().name != "reference"
    ours = digests(found())
    monkeypatch.setattr(lstm, "backend_of", lambda _: ReferenceBackend())
    assert digests(found()) == ours


def modes_and_contexts() -> list[tuple[list[Any], Any]]:
    ways = [[DispatchMode()], [DispatchMode(), Passing()]]
    if can_register():
        ways += [[Registration()], [Registration(), Passing()]]
    return [
        (way, context) for way in ways for context in (torch.enable_grad, torch.no_grad, torch.inference_mode)
    ]


def test_both_ways_of_dispatch_give_the_same_bits_with_and_without_gradients() -> None:
    def run() -> list[Tensor]:
        torch.manual_seed(5)
        layer, x = CASE.module(), torch.randn(5, 20, 3)
        out, states = layer(x)
        return [out.detach(), *(each.detach() for each in states)]

    for fused in (True, False):
        found = set()
        for way, context in modes_and_contexts():
            with context():
                whole = digest_within(way, run if fused else lambda: by_single_ops(run))
            found.add(whole)
        assert len(found) == 1
        if fused:
            first = found
    assert found == first


@pytest.mark.parametrize("context", [torch.enable_grad, torch.no_grad])
def test_a_dispatch_mode_sees_the_steps(context: Callable[[], Any]) -> None:
    with samebits.portable(), Seeing() as mode, context():
        out = Case(both_ways=True, layers=2).module()(torch.randn(4, 3, 3))[0]
        if out.requires_grad:
            out.sum().backward()
    steps, backward = "samebits.lstm_steps.default", "samebits.lstm_steps_backward.default"
    assert mode.seen == [steps] * 4 + [backward] * 4 * out.requires_grad


def test_steps_are_at_once_in_inference_mode_too(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []
    run = lstm.run
    monkeypatch.setattr(lstm, "run", lambda *args, **named: calls.append(args) or run(*args, **named))
    for way in ([DispatchMode()], [Registration()] if can_register() else [DispatchMode()]):
        calls.clear()
        with torch.inference_mode():
            digest_within(way, lambda: [Case().module()(torch.randn(4, 3, 3))[0]])
        assert len(calls) == 1


# ---- Derivatives


def test_a_gradient_to_differentiate_again_has_the_same_bits() -> None:
    for case in (CASE, Case(state="wanted", bias=False, used="both"), Case(steps=1, used="cell")):

        def gradients(*, graph: bool, case: Case = case) -> list[Tensor]:
            torch.manual_seed(5)
            layer, x, first = case.module(), case.x(), case.first()
            results = layer(x, tuple(first) or None)
            asked = [each for each in (x, *first, *layer.parameters()) if each.requires_grad]
            outcome = case.outcome(results[0], *results[1])
            slopes = [torch.ones_like(each) for each in outcome]
            found = torch.autograd.grad(outcome, asked, slopes, create_graph=graph, allow_unused=True)
            assert all(each is None or each.requires_grad == graph for each in found)
            return list(found)

        alone, single = in_both_ways(lambda: gradients(graph=False))
        graph, _ = in_both_ways(lambda: gradients(graph=True))
        assert alone == single == graph


@pytest.mark.parametrize("both_ways", [False, True])
def test_derivatives_are_right(*, both_ways: bool) -> None:
    case = Case(batch=2, size=2, steps=3, inputs=2, dtype=torch.float64, both_ways=both_ways, state="wanted")
    layer, x, first = case.module(), case.x(), case.first()
    names = [name for name, _ in layer.named_parameters()]

    def call(x: Tensor, out: Tensor, cell: Tensor, *weights: Tensor) -> tuple[Tensor, ...]:
        result, last = functional_call(layer, dict(zip(names, weights, strict=True)), (x, (out, cell)))
        return result, *last

    given = (x, *first, *layer.parameters())
    with samebits.portable():
        assert torch.autograd.gradcheck(call, given)
        assert torch.autograd.gradgradcheck(call, given)


def test_second_derivatives_leave_other_calls_alone() -> None:
    """The first state of a call depends on the same weights by way of another call."""

    def run() -> list[Tensor]:
        case = Case(dtype=torch.float64)
        layer, x = case.module(), torch.randn(4, 3, 3, dtype=torch.float64)
        _, state = layer(x)
        out, _ = layer(x, state)
        weights = list(layer.parameters())
        first = torch.autograd.grad(out.square().sum(), weights, create_graph=True)
        second = torch.autograd.grad([each.square().sum() for each in first], weights)
        return [*first, *second]

    with samebits.portable():
        torch.manual_seed(2)
        ours = run()
        torch.manual_seed(2)
        single = by_single_ops(run)
    torch.testing.assert_close(ours, single, rtol=1e-9, atol=1e-9)


def test_calls_in_one_graph_are_summed_each_and_then_together() -> None:
    """The one order that differs from that of single ops (docs/reference/portable-numerics.md)."""
    with samebits.portable():
        torch.manual_seed(2)
        layer, x, y = nn.LSTM(3, 4), torch.randn(5, 2, 3), torch.randn(7, 2, 3)
        weights = [layer.weight_hh_l0, layer.bias_hh_l0]
        first, second = ([*torch.autograd.grad(layer(each)[0].sum(), weights)] for each in (x, y))
        together = torch.autograd.grad(layer(x)[0].sum() + layer(y)[0].sum(), weights)
        for one, other, both in zip(first, second, together, strict=True):
            assert torch.equal(both, one + other)


def grads(layer: nn.LSTM, out: Tensor, *more: Tensor, **named: Any) -> list[Tensor]:
    return list(torch.autograd.grad(out, [*more, *layer.parameters()], **named))


def kept_elsewhere(layer: nn.LSTM, x: Tensor) -> list[Tensor]:
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
        out = layer(x)[0]
    return grads(layer, out.sum(), x)


def computed_again(layer: nn.LSTM, x: Tensor) -> list[Tensor]:
    out = checkpoint(lambda x: layer(x)[0], x, use_reentrant=False)
    return grads(layer, out.square().sum(), x)


def computed_again_inside(layer: nn.LSTM, x: Tensor) -> list[Tensor]:
    checkpoint(lambda x: layer(x)[0], x, use_reentrant=True).square().sum().backward()
    return [x.grad, *(each.grad for each in layer.parameters())]


def twice(layer: nn.LSTM, x: Tensor) -> list[Tensor]:
    out, (last, cell) = layer(x)
    first = grads(layer, out.sum(), x, retain_graph=True)
    return [*first, *grads(layer, last.sum() + cell.sum(), x, retain_graph=True), *grads(layer, out.sum(), x)]


def copied_with_hooks(layer: nn.LSTM, x: Tensor) -> list[Tensor]:
    layer = copy.deepcopy(layer)
    for each in layer.parameters():
        each.register_hook(lambda slope: slope * 3)
    layer(x)[0].sum().backward()
    layer(x)[0].sum().backward()
    return [each.grad for each in layer.parameters()]


def written_over(layer: nn.LSTM, x: Tensor) -> list[Tensor]:
    out, (last, cell) = layer(x)
    out.mul_(2)
    last.add_(1)
    cell.zero_()
    return grads(layer, (out * out).sum() + last.sum() + cell.sum(), x)


def of_a_batch(layer: nn.LSTM, x: Tensor) -> list[Tensor]:
    out = layer(x)[0]
    return grads(layer, out, x, grad_outputs=torch.randn(5, *out.shape), is_grads_batched=True)


def jacobian(layer: nn.LSTM, x: Tensor) -> list[Tensor]:
    return [torch.autograd.functional.jacobian(lambda x: layer(x)[0], x, vectorize=True)]


USES = (
    kept_elsewhere, computed_again, computed_again_inside, twice, copied_with_hooks, written_over, of_a_batch,
    jacobian,
)  # fmt: skip


@pytest.mark.parametrize("case", [Case(), Case(both_ways=True, layers=2, bias=False)])
@pytest.mark.parametrize("use", USES)
@pytest.mark.filterwarnings("ignore")
def test_uses_of_autograd_have_the_same_bits(use: Callable[..., list[Tensor]], case: Case) -> None:
    def run() -> list[Tensor]:
        return use(case.module(), case.x())

    ours, single = in_both_ways(run)
    assert ours == single


def test_a_graph_may_outlive_portable_mode() -> None:
    with samebits.portable():
        torch.manual_seed(1)
        layer, x = nn.LSTM(3, 4), torch.randn(5, 2, 3)
        inside = torch.autograd.grad(layer(x)[0].square().sum(), layer.weight_hh_l0)
        out = layer(x)[0]
        slope = 2 * out.detach()
    outside = torch.autograd.grad(out, layer.weight_hh_l0, slope)
    assert torch.equal(inside[0], outside[0])


def test_portable_mode_may_begin_often_and_in_threads() -> None:
    found: list[list[str]] = []

    def run() -> None:
        with samebits.portable():
            torch.manual_seed(1)
            found.append(digests(Case().run()))

    for _ in range(2):
        with samebits.portable():
            run()
    threads = [
        threading.Thread(target=lambda: found.append(digests(Case(state="plain").run()))) for _ in "ab"
    ]
    with samebits.portable():
        for thread in threads:  # one after the other: they share a generator
            thread.start()
            thread.join()
    assert found[0] == found[1]
    assert found[2] == found[3]


# ---- What is left to torch


def projected(layer: nn.LSTM, x: Tensor) -> Any:
    torch.manual_seed(1)
    return nn.LSTM(3, 5, proj_size=2)(x)[0]


def packed(layer: nn.LSTM, x: Tensor) -> Any:
    return layer(pack_padded_sequence(x, [4, 3, 1]))[0].data


def in_low_precision(layer: nn.LSTM, x: Tensor) -> Any:
    return layer.bfloat16()(x.bfloat16())[0]


def autocast(layer: nn.LSTM, x: Tensor) -> Any:
    with torch.autocast("cpu", torch.bfloat16):
        return layer(x)[0]


def in_forward_mode(layer: nn.LSTM, x: Tensor) -> Any:
    with forward_ad.dual_level():
        dual = layer(forward_ad.make_dual(x, x.cos()))[0]
        return torch.cat(list(forward_ad.unpack_dual(dual)[:2]))


def transformed(layer: nn.LSTM, x: Tensor) -> Any:
    return grad(lambda x: layer(x)[0].sum())(x)


def mapped(layer: nn.LSTM, x: Tensor) -> Any:
    def loss(x: Tensor) -> Tensor:
        first = x.sum() * torch.zeros(1, 3, 5)
        return layer(x, (first, first))[0].sum()

    return vmap(grad(loss))(torch.stack([x, x.cos()]))


def pushed_forward(layer: nn.LSTM, x: Tensor) -> Any:
    return torch.cat(jvp(lambda x: layer(x)[0], (x,), (x.cos(),)))


class Labelled(Tensor):
    """A subclass."""


def of_a_subclass(layer: nn.LSTM, x: Tensor) -> Any:
    return layer(x.as_subclass(Labelled))[0].as_subclass(Tensor)


LEFT = (
    projected, packed, in_low_precision, autocast, in_forward_mode, transformed, mapped, pushed_forward,
    of_a_subclass,
)  # fmt: skip


@pytest.mark.parametrize("call", LEFT)
@pytest.mark.filterwarnings("ignore")
def test_what_is_left_to_torch_has_the_same_bits(call: Callable[..., Tensor]) -> None:
    seeing = Seeing()

    def run() -> list[Tensor]:
        layer, x = Case().module(), torch.randn(4, 3, 3)
        with seeing:
            return [call(layer, x)]

    ours, single = in_both_ways(run)
    assert ours == single
    assert seeing.seen == []


@pytest.mark.parametrize(
    "call",
    [
        lambda layer, x: torch.lstm(x, [x], list(layer.parameters()), True, 1, 0.0, False, False, False),
        lambda layer, x: layer(x, (torch.zeros(1, 2, 5), torch.zeros(1, 3, 5))),
        lambda layer, x: layer(x[:0]),
        lambda layer, x: layer(x.double()),
    ],
)
def test_mistakes_get_the_errors_of_torch(call: Callable[..., Any]) -> None:
    layer, x = Case().module(), torch.randn(4, 3, 3)
    with pytest.raises(Exception) as plain:
        call(layer, x)
    with samebits.portable(), pytest.raises(type(plain.value)) as ours:
        call(layer, x)
    with samebits.portable(), pytest.raises(type(plain.value)) as single:
        by_single_ops(lambda: call(layer, x))
    assert str(ours.value) == str(single.value)


@pytest.mark.parametrize("wrong", ["x", "weight", "bias", "state", "dtype", "empty"])
def test_the_op_refuses_what_it_would_misread(wrong: str) -> None:
    x, weight, bias, state = torch.randn(2, 3, 8), torch.randn(8, 2), torch.randn(8), torch.randn(3, 2)
    given = {
        "x": (x[..., :7], weight, bias, [state, state]),
        "weight": (x, weight[:4], bias, [state, state]),
        "bias": (x, weight, bias[:4], [state, state]),
        "state": (x, weight, bias, [state, state[:2]]),
        "dtype": (x, weight.double(), bias, [state, state]),
        "empty": (x[:0], weight, bias, [state, state]),
    }[wrong]
    with pytest.raises(RuntimeError, match=r"LSTM|do not go with"):
        lstm_ops().named("lstm_steps")(*given, False, True)


def test_a_gradient_refuses_what_it_would_misread() -> None:
    op, backward = lstm_ops().named("lstm_steps"), lstm_ops().named("lstm_steps_backward")
    x, weight, state = torch.randn(2, 3, 8), torch.randn(8, 2), torch.randn(3, 2)
    out, _, _, *course = op(x, weight, None, [state, state], False, True)
    given = weight, [state, state], course, False, [True] * 3
    assert backward([out, None, None], *given)[0].shape == x.shape
    assert backward([None, None, None], *given) == (None,) * 5
    for slopes in ([out[:1], None, None], [None, out, None], [out.double(), None, None]):
        with pytest.raises(RuntimeError, match="do not go together"):
            backward(slopes, *given)
