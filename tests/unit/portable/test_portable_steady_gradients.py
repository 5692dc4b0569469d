"""Gradients whose formula torch chooses by whether a dispatch mode is on: portable mode has one for each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.func import grad, jvp, vmap
from ways import Passing, in_all_ways

import samebits
from samebits._torch.kernel_overrides import can_override

if TYPE_CHECKING:
    from collections.abc import Callable

has_formulas = [int(part) for part in torch.__version__.split(".")[:2]] < [2, 14]
pytestmark = [
    pytest.mark.skipif(not can_override(), reason="this torch has the formulas and keeps them"),
    pytest.mark.usefixtures("unaudited"),
]


def wave(shape: tuple[int, ...], rate: float, dtype: torch.dtype = torch.float32) -> Tensor:
    flat = torch.arange(torch.Size(shape).numel(), dtype=torch.float64)
    return (torch.cos(flat * rate + 2) + 1.5).to(dtype).view(shape)


def with_zeros(x: Tensor) -> Tensor:
    return torch.where(x < 1, 0, x)


def with_equals(x: Tensor) -> Tensor:
    return torch.cat([x, x])


def with_nan(x: Tensor) -> Tensor:
    return torch.where(x > 2, torch.nan, x)


def regular(x: Tensor) -> Tensor:
    return x + 2 * torch.eye(x.shape[-1])


def singular(x: Tensor) -> Tensor:
    return torch.cat([x[..., :1, :], x[..., :1, :] * 2, x[..., 2:, :]], -2)


def filled(x: Tensor, value: Tensor) -> Tensor:
    return x.masked_fill(wave(tuple(x.shape), 0.9) > 1, value)


def filled_in_place(x: Tensor, value: Tensor) -> Tensor:
    return (x * 2).masked_fill_(wave(tuple(x.shape), 0.9) > 1, value)


# The bits of torch's own gradients depend on a mode in every one of these.
CALLS: dict[str, tuple[Callable[..., Tensor], list[tuple[int, ...]]]] = {
    "prod": (torch.prod, [(3, 6)]),
    "prod, zeros": (lambda x: with_zeros(x).prod(), [(3, 6)]),
    "prod, along": (lambda x: x.prod(1), [(3, 9)]),
    "prod, along, kept": (lambda x: x.prod(-2, keepdim=True), [(3, 9, 2)]),
    "cumprod": (lambda x: x.cumprod(1), [(3, 9)]),
    "cumprod_": (lambda x: (x * 1).cumprod_(1), [(3, 9)]),
    "masked_fill": (filled, [(50, 5), ()]),
    "masked_fill_": (filled_in_place, [(50, 5), ()]),
    "max": (lambda x: with_equals(x).max(), [(5, 5)]),
    "min": (lambda x: with_equals(x).min(), [(5, 5)]),
    "median": (lambda x: with_equals(x).median(), [(5, 5)]),
    "median, nan": (lambda x: with_nan(x).median(), [(5, 5)]),
    "nanmedian": (lambda x: with_nan(x).nanmedian(), [(5, 5)]),
    "det": (lambda x: torch.linalg.det(regular(x)), [(2, 5, 5)]),
    "det, transposed": (lambda x: torch.linalg.det(regular(x).mT), [(5, 5)]),
}
DIGESTS = {
    "prod": "433b13731ffb3697f6e717257cd6f9a5",
    "prod, zeros": "60dc8a4af415dda6558961536bb830d5",
    "prod, along": "fe58f29eaa306226a5d7ea92096d3ed9",
    "prod, along, kept": "16a2a530cb77c22cd60ae00ea961bad1",
    "cumprod": "0c84ab1c761e5f77558573ca51490e53",
    "masked_fill": "615167f0247b52f274fb77f41d6cad92",
    "masked_fill_": "09d5d4f09ba439ca8b839aef46d575ab",
    "max": "922512d17394a818a999ce7df35393e6",
    "min": "8403ab1c1d83c98e4a17fccb5d118862",
    "median": "871ca2b62ee5b8b89b7c5456790c5fa6",
    "median, nan": "7e3287d2699b0ceaa0acf40f1e72f5cc",
    "nanmedian": "0b71ae0da73681dd1a852668bd2ddd3f",
    "det": "b732c45cea612f8f2d758fb13fdeb4ba",
    "det, transposed": "1f09f1076afe6248055442c1c8fcec04",
    "prod, zero": "77a6abfca9628e6872bd02b22018b897",
    "prod, along, zeros": "508cd029056d522919bce2a46b4e01e3",
    "cumprod, zeros": "e8d5865a2e07406d8358165d54111e09",
    "det, singular": "1729353c3ecf8e16025e5dabbeef9c22",
    "prod, dtype": "509137fae8800d7e70bac3e3a914ee3a",
    "prod, along, dtype": "418cacab04506c6e4da76280fbbd24a5",
    "masked_fill, wider": "16d32ee44174efc04f7a57b75fba633c",
}
SMALL = {
    "masked_fill": [(7, 5), ()],
    "masked_fill_": [(7, 5), ()],
    "cumprod": [(2, 5)],
    "cumprod_": [(2, 5)],
    "cumprod, zeros": [(5, 2)],
}
# Edges, where torch may take the same path either way.
EDGES: dict[str, tuple[Callable[..., Tensor], list[tuple[int, ...]]]] = {
    "prod, zero": (lambda x: (x * (x != x.min())).prod(), [(3, 6)]),
    "prod, along, zeros": (lambda x: with_zeros(x).prod(1), [(3, 9)]),
    "cumprod, zeros": (lambda x: with_zeros(x).cumprod(0), [(9, 3)]),
    "det, singular": (lambda x: torch.linalg.det(singular(x)), [(2, 4, 4)]),
    "prod, number": (torch.prod, [()]),
    "prod, one": (torch.prod, [(1, 1)]),
    "prod, none": (torch.prod, [(0, 2)]),
    "prod, along number": (lambda x: x.prod(-1), [()]),
    "prod, along none": (lambda x: x.prod(1), [(2, 0)]),
    "prod, along one": (lambda x: x.prod(0, keepdim=True), [(1, 2)]),
    "prod, dtype": (lambda x: x.prod(dtype=torch.float64), [(3, 1)]),
    "prod, along, dtype": (lambda x: x.prod(1, dtype=torch.float64), [(3, 1)]),
    "cumprod, one": (lambda x: x.cumprod(0), [(1, 6)]),
    "cumprod, number": (lambda x: x.cumprod(0), [()]),
    "cumprod, none": (lambda x: x.cumprod(0), [(0, 3)]),
    "masked_fill, wider": (lambda x, v: x.masked_fill(wave((4, 3), 0.9) > 1, v), [(3,), ()]),
    "det, one": (torch.linalg.det, [(2, 1, 1)]),
    "det, none": (torch.linalg.det, [(2, 0, 0)]),
    "eigh": (lambda x: torch.cat([part.flatten() for part in torch.linalg.eigh(x)]), [(4, 4)]),
}  # fmt: skip
BOTH = CALLS | EDGES


def derivatives(
    call: Callable[..., Tensor], shapes: list[tuple[int, ...]], dtype: torch.dtype = torch.float32
) -> list[Tensor]:
    """The result, its gradients alone and with a graph, and the gradients of the latter."""
    given = [wave(shape, 0.7 + at, dtype).requires_grad_() for at, shape in enumerate(shapes)]
    out = call(*given)
    slope = (-wave(tuple(out.shape), 0.37, out.dtype)).requires_grad_()
    alone = torch.autograd.grad(out, given, slope.detach(), retain_graph=True)
    first = torch.autograd.grad(out, given, slope, create_graph=True)
    sources = [each for each in first if each.requires_grad]
    weights = [wave(tuple(each.shape), 0.3, each.dtype) for each in sources]
    second = torch.autograd.grad(sources, [*given, slope], weights, allow_unused=True) if sources else ()
    return [each.detach() for each in (out, *alone, *first, *second) if each is not None]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("name", BOTH)
def test_every_way_gives_the_same_bits(name, dtype):
    if dtype == torch.bfloat16 and name.startswith(("det", "eigh")):
        pytest.skip("torch has none of this dtype")
    first, *others = in_all_ways(lambda: derivatives(*BOTH[name], dtype))
    assert others == [first] * len(others)


@pytest.mark.skipif(not has_formulas, reason="torch has other formulas since 2.14")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", BOTH)
def test_they_are_those_of_torch_under_a_mode(request, name, dtype):
    with Passing():
        plain = derivatives(*BOTH[name], dtype)
    request.getfixturevalue("only_the_gradients")
    with Passing():
        ours = derivatives(*BOTH[name], dtype)
    assert [str(samebits.digest(each)) for each in ours] == [str(samebits.digest(each)) for each in plain]


@pytest.mark.parametrize("name", DIGESTS)
def test_the_bits_do_not_depend_on_the_release(name):
    with samebits.portable():
        found = derivatives(*BOTH[name])
    assert str(samebits.digest(found)) == DIGESTS[name]


@pytest.mark.parametrize(
    "name", [name for name in BOTH if "none" not in name and name not in {"median, nan", "eigh"}]
)
def test_they_are_right(name):
    call, shapes = BOTH[name]
    given = [
        wave(shape, 0.7 + at, torch.float64).requires_grad_()
        for at, shape in enumerate(SMALL.get(name, shapes))
    ]
    with samebits.portable():
        assert torch.autograd.gradcheck(call, given)
        assert torch.autograd.gradgradcheck(call, given)


@pytest.mark.parametrize(
    "call", [torch.prod, lambda x: x.prod(0), lambda x: x.prod(-1, keepdim=True, dtype=torch.float64)]
)
@pytest.mark.parametrize("zeros", [0, 1, 2])
def test_the_tangent_of_a_product_is_its_gradient_times_the_step(call, zeros):
    x, step = wave((9,), 0.7), wave((9,), 1.3)
    x[:zeros] = 0

    def tangent() -> Tensor:
        with forward_ad.dual_level():
            return forward_ad.unpack_dual(call(forward_ad.make_dual(x, step))).tangent

    first, *others = in_all_ways(lambda: [tangent()])
    assert others == [first] * len(others)
    with samebits.portable():
        gradient = grad(lambda x: call(x).sum().float())(x)
        torch.testing.assert_close(tangent().sum().float(), (gradient * step).sum())
        torch.testing.assert_close(jvp(call, (x,), (step,))[1], tangent())


@pytest.mark.parametrize("name", BOTH)
def test_transforms_give_the_same_gradients(name):
    call, shapes = BOTH[name]
    given = [wave(shape, 0.7 + at, torch.float64) for at, shape in enumerate(shapes)]

    def total(*given: Tensor) -> Tensor:
        return (call(*given) * 2).sum()

    with samebits.portable():
        leaves = [each.clone().requires_grad_() for each in given]
        plain = torch.autograd.grad(total(*leaves), leaves)[0]
        torch.testing.assert_close(grad(total)(*given), plain)
        torch.testing.assert_close(vmap(grad(total))(*(each[None] for each in given))[0], plain)


def test_a_number_that_is_nan_shares_its_slope_between_the_others():
    with samebits.portable():
        x = torch.tensor([1.0, torch.nan, torch.nan, 2.0], requires_grad=True)
        (found,) = torch.autograd.grad(x.max(), x, torch.tensor(3.0))
    assert found.tolist() == [0.0, 1.5, 1.5, 0.0]


def test_they_are_in_use_only_in_portable_mode_and_where_gradients_are_wanted():
    x = wave((3, 3), 0.7).requires_grad_()
    calls = [torch.prod, lambda x: x.prod(0), torch.max, torch.linalg.det]
    plain = [call(x).grad_fn.name() for call in calls]
    with samebits.portable():
        ours = [call(x).grad_fn.name() for call in calls]
        with torch.no_grad():
            assert [call(x).grad_fn for call in calls] == [None] * len(calls)
    assert all(one != other for one, other in zip(plain, ours, strict=True))
    assert plain == [call(x).grad_fn.name() for call in calls]
