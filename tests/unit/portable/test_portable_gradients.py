"""Gradients that are the same on all releases of torch, beside those of a torch that has these formulas."""

from __future__ import annotations

import threading

import pytest
import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

import samebits
from samebits._torch.kernel_overrides import GRAPH_KEY, KernelOverrides, can_override

needs_override = pytest.mark.skipif(not can_override(), reason="this torch has the formulas and keeps them")
has_formulas = [int(part) for part in torch.__version__.split(".")[:2]] < [2, 14]
NAN = float("nan")
VALUES = torch.tensor([-3.0, -1.0, -0.5, -0.0, 0.0, 0.25, 1.0, 2.0, NAN, float("inf"), -float("inf")])
LOW, HIGH = torch.meshgrid(torch.tensor([-1.0, 0.0, 1.0, NAN]), torch.tensor([-1.0, 0.0, 1.0]), indexing="ij")
X = VALUES.view(-1, 1, 1)

# Every op, in every way that it can be called, at the values where the formulas differ.
CALLS = {
    "clamp": lambda x, low, high: x.clamp(-1, 1),
    "clamp, one bound": lambda x, low, high: torch.clamp(x, min=-0.5) * torch.clamp(x, max=1),
    "clip": lambda x, low, high: torch.clip(x, 0, 0.25),
    "clamp, crossed": lambda x, low, high: x.clamp(1, -1),
    "clamp.Tensor": torch.clamp,
    "clamp.Tensor, low": lambda x, low, high: torch.clamp(x, min=low),
    "clamp.Tensor, high": lambda x, low, high: torch.clamp(x, max=high),
    "clamp_min": lambda x, low, high: x.clamp_min(0),
    "clamp_min.Tensor": lambda x, low, high: x.clamp_min(low),
    "clamp_max": lambda x, low, high: x.clamp_max(1),
    "clamp_max.Tensor": lambda x, low, high: x.clamp_max(high),
    "fmax": lambda x, low, high: torch.fmax(x, low) + torch.fmax(high, low),
    "fmin": lambda x, low, high: torch.fmin(x, low) + torch.fmin(high, low),
    "log_ndtr": lambda x, low, high: torch.special.log_ndtr(x),
    "log10": lambda x, low, high: torch.log10(x + 4),
    "clamp_": lambda x, low, high: (x * 1).clamp_(-1, 1),
    "clamp_.Tensor": lambda x, low, high: (x * low).clamp_(low, high),
    "clamp_min_": lambda x, low, high: (x * 1).clamp_min_(0),
    "clamp_max_": lambda x, low, high: (x * 1).clamp_max_(1),
    "log10_": lambda x, low, high: (x + 4).log10_(),
    "inside another op": lambda x, low, high: torch.corrcoef(torch.cat([high, 2 * high, -high])),
}  # fmt: skip


def inputs(dtype: torch.dtype) -> list[Tensor]:
    return [each.to(dtype).clone().requires_grad_() for each in (X, LOW, HIGH)]


def derivatives(call, dtype) -> list[Tensor]:
    """Gradients, and gradients of gradients where there are any."""
    given = inputs(dtype)
    out = call(*given)
    slope = (torch.arange(out.numel()) % 7 - 3.0).view_as(out).to(out.dtype).requires_grad_()
    first = torch.autograd.grad(out, given, slope, create_graph=True, allow_unused=True)
    firsts = [each for each in first if each is not None]
    sums = [each.sum() for each in firsts if each.requires_grad]
    second = torch.autograd.grad(sums, [*given, slope], allow_unused=True) if sums else ()
    return [out.detach(), *(each.detach() for each in (*firsts, *second) if each is not None)]


@needs_override
@pytest.mark.skipif(not has_formulas, reason="torch has other formulas since 2.14")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("name", CALLS)
def test_they_are_those_of_torch(request, name, dtype):
    if (name, dtype) == ("log_ndtr", torch.bfloat16):
        pytest.skip("torch has no such op")
    plain = derivatives(CALLS[name], dtype)
    request.getfixturevalue("only_the_gradients")
    ours = derivatives(CALLS[name], dtype)
    assert len(plain) == len(ours)
    for one, other in zip(plain, ours, strict=True):
        torch.testing.assert_close(other, one, rtol=0, atol=0, equal_nan=True)
        assert torch.equal(one.signbit(), other.signbit())


@needs_override
@pytest.mark.parametrize("name", [name for name in CALLS if "fm" not in name])
def test_forward_mode_is_the_same_rule(only_the_gradients, name):
    """A tangent times a slope, forwards and backwards."""
    given = [each.nan_to_num(2, 3, -4).detach() for each in inputs(torch.float64)]
    tangents = [torch.linspace(-1, 2, each.numel(), dtype=each.dtype).view_as(each) for each in given]
    _, forwards = torch.func.jvp(CALLS[name], tuple(given), tuple(tangents))
    slope = torch.linspace(1, 3, forwards.numel(), dtype=forwards.dtype).view_as(forwards)
    _, pull = torch.func.vjp(CALLS[name], *given)
    backwards = sum((each * tangent).sum() for each, tangent in zip(pull(slope), tangents, strict=True))
    torch.testing.assert_close((forwards * slope).sum(), backwards)


def gradient(call) -> list[float]:
    x = torch.tensor([-2.0, -1.0, 0.5, 1.0, 2.0], requires_grad=True)
    return torch.autograd.grad(call(x).sum(), x)[0].tolist()


@pytest.mark.parametrize(
    ("call", "wanted"),
    [
        (lambda x: x.clamp(-1, 1), [0, 1, 1, 1, 0]),
        (lambda x: (x + 0).clamp_(-1, 1), [0, 1, 1, 1, 0]),
        (lambda x: torch.clamp(x, torch.tensor(-1.0), torch.tensor(1.0)), [0, 1, 1, 1, 0]),
        (lambda x: torch.fmax(x, torch.tensor(1.0)), [0, 0, 0, 1, 1]),
        (lambda x: checkpoint(lambda y: y.clamp(-1, 1), x, use_reentrant=False), [0, 1, 1, 1, 0]),
        (lambda x: torch.func.vmap(torch.func.grad(lambda y: y.clamp(-1, 1)))(x) * x, [0, 1, 1, 1, 0]),
    ],
)  # fmt: skip
def test_every_release_has_them_in_portable_mode(call, wanted):
    """Where torch is too old to give its kernels away, it has these formulas itself."""
    with samebits.portable():
        assert gradient(call) == wanted


def test_gradients_of_gradients_through_transforms():
    x = torch.tensor([-2.0, -1.0, 0.5, 1.0, 2.0])
    with samebits.portable():
        found = torch.func.hessian(lambda y: y.clamp(-1, 1).pow(3).sum())(x)
        nested = torch.func.grad(lambda y: torch.func.grad(lambda z: z.clamp(-1, 1).pow(3).sum())(y).sum())(x)
    assert found.diagonal().tolist() == nested.tolist() == [0, -6, 3, 6, 0]


@needs_override
def test_they_end_with_the_block_and_stay_in_its_thread():
    x = torch.ones(3, requires_grad=True)
    names: list[str] = []

    def elsewhere() -> None:
        names.append(x.clamp(0, 1).grad_fn.name())

    plain = x.clamp(0, 1).grad_fn.name()
    thread = threading.Thread(target=elsewhere)
    begin = threading.Event()
    late = threading.Thread(target=lambda: (begin.wait(60), elsewhere()))
    late.start()
    with samebits.portable():
        with samebits.portable():
            ours = x.clamp(0, 1).grad_fn.name()
        begin.set()
        late.join()
        assert x.clamp(0, 1).grad_fn.name() == ours != plain
        thread.start()
        thread.join()
    assert names == [plain, ours]
    assert x.clamp(0, 1).grad_fn.name() == plain


def test_in_place_errors_are_those_of_torch():
    x = torch.ones(3, requires_grad=True)
    with samebits.portable():
        with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
            x.clamp_(0, 1)
        y = x * 2
        z = y * y
        y.clamp_(0, 1)
        assert y._version > 0
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            z.sum().backward()
        with pytest.raises(RuntimeError, match="broadcast shape"):
            (x * 2).clamp_(torch.zeros(2, 3), torch.ones(2, 3))


def test_without_gradients_torch_is_asked():
    x = torch.ones(3, requires_grad=True)
    with samebits.portable():
        with torch.no_grad():
            assert x.clamp(0, 1).grad_fn is None
        with torch.inference_mode():
            assert x.clamp(0, 1).is_inference()
        assert x.detach().clamp_(0, 1).grad_fn is None
        assert torch.ones(3, device="meta", requires_grad=True).clamp(0, 1).shape == (3,)


@needs_override
def test_a_torch_that_gives_no_kernels_away_keeps_its_formulas(monkeypatch):
    """As 2.6 to 2.8, which have the formulas themselves."""
    monkeypatch.delattr(torch.library, "get_kernel")
    x = torch.ones(3, requires_grad=True)
    plain = x.clamp(0, 1).grad_fn.name()
    with samebits.portable():
        assert x.clamp(0, 1).grad_fn.name() == plain


@needs_override
def test_kernels_that_cannot_be_registered_are_an_error_each_time(monkeypatch):
    """And none of them stays: half of the gradients would be torch's, without a word."""
    x = torch.ones(3, requires_grad=True)
    plain = x.clamp(0, 1).grad_fn.name()
    kernels = KernelOverrides(
        {"clamp": lambda otherwise, *_: 1 / 0, "no_such_op": lambda *_: None}, GRAPH_KEY
    )
    for _ in range(2):
        with pytest.raises(AttributeError, match="no_such_op"):
            kernels.hold()
        assert x.clamp(0, 1).grad_fn.name() == plain
