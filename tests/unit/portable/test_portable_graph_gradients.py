"""Gradients of `cumprod` and group norm: the same bits on all releases of torch, and right ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch
from torch import Tensor
from torch.func import grad, hessian, jvp, vmap
from torch.nn.functional import group_norm
from torch.utils.checkpoint import checkpoint
from ways import Passing

import samebits
from samebits._torch.kernel_overrides import can_override

if TYPE_CHECKING:
    from collections.abc import Callable

needs_override = pytest.mark.skipif(not can_override(), reason="this torch has the formulas and keeps them")
has_formulas = [int(part) for part in torch.__version__.split(".")[:2]] < [2, 14]


def wave(shape: tuple[int, ...], rate: float, dtype: torch.dtype = torch.float32) -> Tensor:
    flat = torch.arange(torch.Size(shape).numel(), dtype=torch.float64)
    return torch.cos(flat * rate).to(dtype).view(shape)


def with_zeros(x: Tensor) -> Tensor:
    return torch.where(x.abs() < 0.2, 0, x)


def statistics(x: Tensor, weight: Tensor | None, bias: Tensor | None) -> tuple[Tensor, ...]:
    return torch.native_group_norm(x, weight, bias, 3, 6, 5, 3, 1e-5)


CALLS = {
    "cumprod": (lambda x: x.cumprod(1), [(3, 6, 5)]),
    "cumprod, last": (lambda x: torch.cumprod(x, -1), [(3, 6, 5)]),
    "cumprod, zeros": (lambda x: with_zeros(x).cumprod(1), [(3, 6, 5)]),
    "cumprod, one": (lambda x: x.cumprod(0), [(1, 6)]),
    "cumprod, scalar": (lambda x: x.cumprod(0), [()]),
    "cumprod, dtype": (lambda x: x.cumprod(1, dtype=torch.float64), [(3, 6)]),
    "group norm": (lambda x, w, b: group_norm(x, 3, w, b), [(3, 6, 5), (6,), (6,)]),
    "group norm, plain": (lambda x: group_norm(x, 2), [(3, 6, 5)]),
    "group norm, weight": (lambda x, w: group_norm(x, 1, w), [(3, 6, 5), (6,)]),
    "layer": (lambda x: torch.nn.GroupNorm(3, 6).to(x.dtype)(x), [(3, 6, 5, 2)]),
}  # fmt: skip


def derivatives(
    call: Callable[..., Tensor], shapes: list[tuple[int, ...]], dtype: torch.dtype
) -> list[Tensor]:
    """The result, its gradients alone and with a graph, and the gradients of the latter."""
    given = [wave(shape, 0.7 + at, dtype).requires_grad_() for at, shape in enumerate(shapes)]
    out = call(*given)
    slope = wave(tuple(out.shape), 0.37, out.dtype).requires_grad_()
    alone = torch.autograd.grad(out, given, slope.detach(), retain_graph=True)
    first = torch.autograd.grad(out, given, slope, create_graph=True)
    weights = [wave(tuple(each.shape), 0.3, each.dtype) for each in first]
    second = torch.autograd.grad(first, [*given, slope], weights, allow_unused=True)
    return [each.detach() for each in (out, *alone, *first, *second) if each is not None]


@needs_override
@pytest.mark.skipif(not has_formulas, reason="torch has other formulas since 2.14")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("name", CALLS)
def test_they_are_those_of_torch(request, name, dtype):
    with Passing():
        plain = derivatives(*CALLS[name], dtype)
    request.getfixturevalue("only_the_gradients")
    with Passing():
        ours = derivatives(*CALLS[name], dtype)
    assert len(plain) == len(ours)
    for one, other in zip(plain, ours, strict=True):
        torch.testing.assert_close(other, one, rtol=0, atol=0)


@needs_override
@pytest.mark.parametrize(
    ("name", "digest"),
    [
        ("cumprod", "986b8a7012044785cf66de1b30aef064"),
        ("cumprod, zeros", "e77f8e665d1ac1fb677983fa05833ead"),
        ("group norm", "6e104eb3270fa8747bde52152d9d6d7f"),
    ],
)
def test_the_bits_do_not_depend_on_the_release(name, digest):
    with samebits.portable():
        found = derivatives(*CALLS[name], torch.float32)
    assert str(samebits.digest(found)) == digest


@needs_override
@pytest.mark.parametrize("chosen", [[0], [1], [2], [0, 1], [0, 2], [1, 2], [0, 1, 2]])
def test_gradients_through_the_statistics_of_a_group_norm_are_right(chosen):
    """2.13 leaves those of the mean or the deviation out where there is only one of them."""

    def call(x: Tensor, weight: Tensor, bias: Tensor) -> tuple[Tensor, ...]:
        found = statistics(x, weight, bias)
        return tuple(found[at] for at in chosen)

    given = [wave(shape, 1.1, torch.float64).requires_grad_() for shape in ((3, 6, 5), (6,), (6,))]
    with samebits.portable():
        assert torch.autograd.gradcheck(call, given)
        assert torch.autograd.gradgradcheck(call, given)


@needs_override
def test_a_bias_without_a_weight():
    """2.13 fails at the second gradient."""
    given = [wave(shape, 1.1, torch.float64).requires_grad_() for shape in ((3, 6, 5), (6,))]
    with samebits.portable():
        assert torch.autograd.gradgradcheck(lambda x, bias: group_norm(x, 2, None, bias), given)


@pytest.mark.parametrize(
    "call", [lambda x: x.cumprod(0).sum(), lambda x: group_norm(x.view(1, 4), 2).pow(3).sum()]
)
def test_transforms_and_checkpoints_have_the_same_gradients(call):
    x = torch.tensor([1.0, -2.0, 0.5, 3.0], dtype=torch.float64)
    batch = torch.stack([x, 2 * x.flip(0) + 1])
    with samebits.portable():
        leaf = x.clone().requires_grad_()
        (first,) = torch.autograd.grad(call(leaf), leaf, create_graph=True)
        rows = torch.stack([torch.autograd.grad(each, leaf, retain_graph=True)[0] for each in first])
        torch.testing.assert_close(hessian(call)(x), rows)
        torch.testing.assert_close(grad(call)(x), first.detach())
        torch.testing.assert_close(vmap(grad(call))(batch)[0], first.detach())
        _, forwards = jvp(call, (x,), (torch.ones_like(x),))
        torch.testing.assert_close(forwards, first.detach().sum())
        again = checkpoint(call, leaf, use_reentrant=False)
        assert torch.equal(torch.autograd.grad(again, leaf)[0], first.detach())


@needs_override
def test_they_are_in_use_only_in_portable_mode_and_where_gradients_are_wanted():
    x = torch.ones(1, 4, requires_grad=True)
    plain = [x.cumprod(1).grad_fn.name(), group_norm(x, 2).grad_fn.name()]
    with samebits.portable():
        ours = [x.cumprod(1).grad_fn.name(), group_norm(x, 2).grad_fn.name()]
        with torch.no_grad():
            assert x.cumprod(1).grad_fn is None
            assert group_norm(x, 2).grad_fn is None
        assert x.detach().cumprod(1).grad_fn is None
    assert all(one != other for one, other in zip(plain, ours, strict=True))
    assert plain == [x.cumprod(1).grad_fn.name(), group_norm(x, 2).grad_fn.name()]
