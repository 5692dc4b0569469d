"""The C code that torch's dispatcher calls gives the bits of the handlers."""

from __future__ import annotations

import functools
import itertools
import threading
from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

import samebits
from samebits.portable import _native_ops, _registration
from samebits.portable._dispatch import PortableMode, uses_registration
from samebits.portable._native_ops import left_to_handlers, native_ops

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.skipif(
    not uses_registration() or not native_ops(), reason="no C code for the dispatcher here"
)
aten = torch.ops.aten
MASKS = [list(mask) for mask in itertools.product([True, False], repeat=3)]
DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.int64]


@pytest.fixture(autouse=True)
def audited() -> None:
    """No audit here: it leaves all ops to the handlers."""


def tensors(dtype: torch.dtype) -> Iterator[Tensor]:
    """Of many shapes and strides, with special values."""
    torch.manual_seed(3)
    for shape in ((), (1,), (7,), (3, 5), (1, 5), (3, 1), (2, 3, 4), (0, 3), (70, 600)):
        yield filled(shape, dtype)
    yield filled((5, 3), dtype).t()
    yield filled((4, 6), dtype)[:, ::2]
    yield filled((3,), dtype).expand(2, 3)
    yield filled((9,), dtype)[2:]


def filled(shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    """Numbers, among them infinities, zeros of both signs, NaN and a subnormal one."""
    out = (torch.randn(shape, dtype=torch.float64) * 3).to(dtype)
    if dtype.is_floating_point and out.numel() > 6:
        special = torch.tensor([float("inf"), -float("inf"), 0.0, -0.0, float("nan"), 1e-40])
        out.view(-1)[:6] = special.to(dtype)
    return out


def outcome(call: Callable[[], Any]) -> Any:
    """The digests of what a call gives, with strides; or its error."""
    try:
        given = call()
    except Exception as error:  # noqa: BLE001 - compared
        return type(error), str(error).partition(" at ")[0]
    results = given if isinstance(given, (tuple, list)) else [given]
    return [
        None
        if each is None
        else (str(samebits.digest(each.nan_to_num(7.0) if each.is_floating_point() else each)), each.dtype)
        for each in results
    ]


def check(call: Callable[..., Any], *args: Any) -> None:
    """The C code and the handlers agree."""
    with PortableMode():
        ours = outcome(lambda: call(*args))
        with left_to_handlers():
            assert ours == outcome(lambda: call(*args))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", ["add", "sub", "mul", "div"])
def test_arithmetic(name, dtype):
    function, in_place = getattr(torch, name), getattr(Tensor, f"{name}_")
    others = [*tensors(torch.float32), *tensors(dtype), 2, 0.1, 1e300, -0.0, True, 2**40]
    for x in tensors(dtype):
        for other in others:
            check(function, x, other)
            check(lambda x, y: in_place(x.clone(), y), x, other)
        check(lambda x: 0.3 * x, x)


@pytest.mark.parametrize("alpha", [1, 1.0, 2, -0.3, True])
@pytest.mark.parametrize("name", ["add", "sub"])
def test_scaled_sums(name, alpha):
    for x, y in itertools.product(tensors(torch.float32), repeat=2):
        check(lambda x, y: getattr(torch, name)(x, y, alpha=alpha), x, y)
        check(lambda x, y: getattr(x.clone(), f"{name}_")(y, alpha=alpha), x, y)


def changed_by(call: Callable[[Tensor], Any], base: Tensor) -> Tensor:
    """A copy, after the call."""
    copy = base.clone()
    call(copy)
    return copy


def test_in_place_with_shared_memory():
    """What is read lies where the result goes, beside it, or half over it."""
    for call in (
        lambda x: x.mul_(x),
        lambda x: x[1:].add_(x[:-1]),
        lambda x: x[:-1].sub_(x[1:]),
        lambda x: x.div_(x[3]),
        lambda x: x.add_(x[2:3], alpha=2),
    ):
        base = filled((40,), torch.float32).nan_to_num(1.0, 2.0, 3.0)

        check(changed_by, call, base)


SINGLE = sorted(
    name
    for name, (function, _) in _native_ops._table().items()
    if function in {"unary", "root", "relu", "move"}
)


@pytest.mark.parametrize("name", SINGLE)
def test_functions(name):
    packet, _, overload = name.partition(".")
    op = getattr(getattr(aten, packet), overload or "default")
    if packet == "empty_like":
        pytest.skip("its contents are nobody's")
    for dtype in DTYPES:
        for x in tensors(dtype):
            check(lambda x: op(x.clone()), x)


PAIRS = sorted(
    name
    for name, (function, _) in _native_ops._table().items()
    if function == "pair" or (function == "activation" and name.endswith("_backward"))
)


@pytest.mark.parametrize("name", PAIRS)
def test_functions_of_two(name):
    op = getattr(aten, name).default
    for dtype in DTYPES[:3]:
        for x in tensors(dtype):
            check(op, x, x * 0.3)
            check(op, x, x[..., :1] if x.dim() else x)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_products(dtype):
    for m, k, n in ((1, 1, 1), (3, 5, 2), (8, 300, 7), (0, 3, 2), (3, 0, 2), (40, 70, 50)):
        a, b, added = filled((m, k), dtype), filled((k, n), dtype), filled((n,), dtype)
        wide, turned = filled((m, n), dtype), filled((n, k), dtype).t()
        check(torch.mm, a, b)
        check(torch.mm, a, turned)
        check(torch.mm, a, a)
        for each in (
            added,
            wide,
            wide[:1],
            added[:1],
            wide[:, :1],
            filled((), dtype),
            filled((2, m, n), dtype),
        ):
            check(torch.addmm, each, a, b)
            check(functools.partial(torch.addmm, beta=0.5, alpha=2), each, a, b)
            check(functools.partial(torch.addmm, beta=0), each, a, b)
        batch = filled((4, m, k), dtype), filled((4, k, n), dtype)
        check(torch.bmm, *batch)
        check(torch.bmm, batch[0], batch[0])
        for each in (added, wide, filled((4, m, n), dtype), filled((4, 1, n), dtype)):
            check(functools.partial(torch.baddbmm, alpha=0.5), each, *batch)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", ["sum", "mean"])
def test_sums(name, dtype):
    for x in tensors(dtype):
        check(lambda x: getattr(x, name)(), x)
        for dims in (0, -1, [0, -1], [], [5], [0, 0]):
            for keepdim in (False, True):
                check(lambda x, *rest: getattr(x, name)(*rest), x, dims, keepdim)
        check(lambda x: getattr(x, name)(0, dtype=torch.float64), x)


@pytest.mark.parametrize("dtype", DTYPES[:3], ids=str)
def test_rows(dtype):
    for x in tensors(dtype):
        for dim in (-1, 0):
            for log in (False, True):
                function = functional.log_softmax if log else functional.softmax
                check(function, x, dim)
                backward = aten._log_softmax_backward_data if log else aten._softmax_backward_data
                check(backward, x, x.mul(0.5), dim, dtype)
        if x.dim() and x.numel():
            shape, weight = list(x.shape[-1:]), filled(tuple(x.shape[-1:]), dtype)
            for given in ((None, None), (weight, None), (weight, weight)):
                check(aten.native_layer_norm, x, shape, *given, 1e-5)
            check(aten.native_layer_norm, x, [99], None, None, 1e-5)


@pytest.mark.parametrize("dtype", DTYPES[:3], ids=str)
@pytest.mark.parametrize("shape", [(2, 3), (1, 3, 4, 5), (4, 3, 0), (3, 3, 1), (2, 3, 300, 7)])
def test_channels(shape, dtype):
    x, (weight, bias, mean) = filled(shape, dtype), filled((3, 3), dtype)
    for variance in (
        filled((3,), dtype).abs(),
        filled((3,), dtype),
        torch.ones(3),
        torch.ones(4, dtype=dtype),
    ):
        for affine in ((weight, bias), (weight, None), (None, bias), (None, None)):
            given = (*affine, mean, variance)
            check(aten.native_batch_norm, x, *given, False, 0.1, 1e-5)
            check(aten._native_batch_norm_legit, x, *given, False, 0.1, 1e-5)
            check(aten._native_batch_norm_legit_no_training, x, *given, 0.1, 1e-5)
        check(aten.native_batch_norm, x.transpose(0, 1)[:, :3], *given, False, 0.1, 1e-5)
        check(aten.native_batch_norm, x, *given[:2], mean.clone(), variance.clone(), True, 0.1, 1e-5)


@pytest.mark.parametrize("dtype", DTYPES[:3], ids=str)
@pytest.mark.parametrize(
    ("shape", "groups"), [((2, 6, 1), 3), ((3, 4, 5, 7), 2), ((1, 4, 3, 3), 4), ((2, 8, 40, 40), 1)], ids=str
)
def test_groups(shape, groups, dtype):
    x, slope = filled(shape, dtype), filled(shape, dtype).flip(0)
    weight, bias = filled((2, shape[1]), dtype)
    sizes = shape[0], shape[1], x.numel() // (shape[0] * shape[1]), groups
    mean, rstd = torch.randn(2, shape[0], groups, dtype=dtype)
    for affine in ((weight, bias), (weight, None), (None, bias), (None, None)):
        check(aten.native_group_norm, x, *affine, *sizes, 1e-5)
    check(aten.native_group_norm, x.transpose(0, 1).contiguous().transpose(0, 1), weight, bias, *sizes, 1e-5)
    check(aten.native_group_norm, x, weight[1:], bias, *sizes, 1e-5)
    check(aten.native_group_norm, x, weight, bias, 2 * sizes[0], *sizes[1:], 1e-5)
    check(aten.native_group_norm, x, weight, bias, *sizes[:3], 5, 1e-5)
    check(aten.native_group_norm, x, weight.double(), bias.double(), *sizes, 1e-5)
    for scale, mask in itertools.product((weight, None), MASKS):
        check(aten.native_group_norm_backward, slope, x, mean, rstd, scale, *sizes, mask)
    for given in ((slope[:1], x, mean, rstd), (slope, x, mean[:, 1:], rstd), (slope, x.double(), mean, rstd)):
        check(aten.native_group_norm_backward, *given, weight, *sizes, MASKS[0])


POOLINGS = [
    ([2],),
    ([2, 2], []),
    ([3, 2], [2, 1], [1, 0]),
    ([3], [1], [1], False, False),
    ([5], [2], [2], True),
    ([3], [4], [0], True, False),
    ([2], [3], [1], False, True, 3),
    ([3], [], [1], True, False, 5),
    ([2], [2], [0], False, True, -2),
    ([2], [2], [2]),
    ([9]),
]


@pytest.mark.parametrize("dtype", DTYPES[:3], ids=str)
@pytest.mark.parametrize("pooling", POOLINGS, ids=str)
def test_pooling(pooling, dtype):
    default = ([2], [], [0], False, True, None)
    given = (*pooling, *default[len(pooling) :])
    for shape in ((3, 8, 8), (2, 3, 7, 70), (1, 1, 5, 6), (2, 4, 33, 40), (0, 3, 8, 8)):
        image = filled(shape, dtype)
        for x in (image, image.mT.contiguous().mT, image[:, 1:], image[1:]):
            check(aten.avg_pool2d, x, *pooling)
        try:
            slope = filled(tuple(aten.avg_pool2d(image, *pooling).shape), dtype)
        except RuntimeError:
            slope = filled((*shape[:-2], 4, 4), dtype)
        check(aten.avg_pool2d_backward, slope, image, *given)
        check(aten.avg_pool2d_backward, slope[..., 1:], image, *given)
        check(aten.avg_pool2d_backward, slope, image.double(), *given)


NEAREST = [
    ((8, 8), (16, 16), ()),
    ((8, 5), (16, 5), (2.0, 1.0)),
    ((5, 20), (20, 160), (4.0, 8.0)),
    ((8, 8), (16, 16), (2.5, 2.0)),
    ((3, 4), (9, 20), (3.0, 5.0)),
    ((7, 9), (10, 11), ()),
    ((7, 49), (10, 343), (1.5, 7.0)),
    ((9, 7), (4, 3), (None, 0.5)),
    ((8, 8), (16, 16), (-1.0, 0.0)),
    ((1, 40), (3, 80), (None, None)),
    ((2, 3), (2, 123), ()),
]


@pytest.mark.parametrize("dtype", DTYPES[:3], ids=str)
@pytest.mark.parametrize(("size", "outputs", "factors"), NEAREST, ids=str)
def test_nearest(size, outputs, factors, dtype):
    outputs = list(outputs)
    for leading in ((2, 3), (1, 1), (0, 2)):
        image, slope = filled((*leading, *size), dtype), filled((*leading, *outputs), dtype)
        for x in (image, image.mT.contiguous().mT, image.contiguous(memory_format=torch.channels_last)):
            check(aten.upsample_nearest2d, x, outputs, *factors)
            with PortableMode():
                ours = aten.upsample_nearest2d(x, outputs, *factors)
            plain = aten.upsample_nearest2d(x, outputs, *factors)
            assert str(samebits.digest(ours)) == str(samebits.digest(plain))
            assert ours.stride() == plain.stride()
        check(aten.upsample_nearest2d_backward, slope, outputs, [*leading, *size], *factors)
        check(aten.upsample_nearest2d_backward, slope[..., 1:], outputs, [*leading, *size], *factors)
        wide = filled((leading[0], leading[1] + 2, *outputs), dtype)[:, 1 : leading[1] + 1]
        check(aten.upsample_nearest2d_backward, wide, outputs, [*leading, *size], *factors)
        check(aten.upsample_nearest2d_backward, slope.mT, outputs, [*leading, *size], *factors)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("number", [0.1, -0.0, 3, 0.7, 1e39, 2**40, True])
def test_updates(number, dtype):
    for x in tensors(dtype):
        for other in (
            x.mul(0.5),
            x,
            x.flip(0) if x.dim() else x,
            filled((1,), dtype),
            filled((), torch.float64),
        ):
            check(lambda x, y: x.clone().lerp_(y, number), x, other)
            for name in ("addcmul_", "addcdiv_"):
                check(lambda x, y, name=name: getattr(x.clone(), name)(y, y + 1, value=number), x, other)
                check(lambda x, y, name=name: getattr(x.clone(), name)(x, y), x, other)
    for call in (
        lambda x: x.lerp_(x, number),
        lambda x: x[1:].lerp_(x[:-1], number),
        lambda x: x.addcmul_(x, x, value=number),
        lambda x: x[:-1].addcdiv_(x[1:], x[:-1], value=number),
    ):
        check(changed_by, call, filled((40,), dtype))


@pytest.mark.parametrize("dtype", DTYPES[:3], ids=str)
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_convolutions(dims, dtype):
    images = [filled((2, 4, *size[:dims]), dtype) for size in ((7, 6, 5), (1, 1, 1), (0, 2, 2), (20, 3, 4))]
    for image, taps, stride, padding, dilation in itertools.product(
        images, (1, 2, 3), (1, 2), (0, 1), (1, 2)
    ):
        for weight, groups in (
            (filled((6, 4, *[taps] * dims), dtype), 1),
            (filled((4, 2, *[taps] * dims), dtype), 2),
        ):
            bias, given = filled((weight.shape[0],), dtype), ([stride], [padding] * dims, [dilation])
            check(aten.convolution, image, weight, bias, *given, False, [0], groups)
            check(aten.convolution, image, weight, None, *given, False, [0] * dims, groups)
    last, weight = [1] * dims, filled((4, 4, *[2] * dims), dtype)
    check(aten.convolution, images[0], weight, None, last, [0], last, True, [0], 1)
    check(aten.convolution, images[0][0], weight, None, last, [0], last, False, [0], 1)
    check(
        aten.convolution,
        images[0].transpose(0, 1)[:, [0, 1, 0, 1]],
        weight,
        None,
        last,
        [0],
        last,
        False,
        [0],
        1,
    )
    check(aten.convolution, images[0], weight, bias, last, [0], last, False, [0], 3)
    check(aten.convolution, images[0], weight[:, :3], None, last, [0], last, False, [0], 1)
    check(aten.convolution, images[0], weight, bias[:3], last, [0], last, False, [0], 1)
    if dims == 2:
        for one, other in (
            (torch.channels_last, torch.contiguous_format),
            (torch.contiguous_format, torch.channels_last),
        ):
            pair = images[0].contiguous(memory_format=one), weight.contiguous(memory_format=other)
            check(aten.convolution, *pair, bias, last, [0], last, False, [0], 1)


@pytest.mark.parametrize("dtype", DTYPES[:3], ids=str)
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_gradients_of_convolutions(dims, dtype):
    backward = aten.convolution_backward
    for size, taps, stride, padding, dilation in (
        ((9, 6, 5), 3, 1, 1, 1),
        ((9, 8, 7), 3, 2, 1, 2),
        ((8, 5, 4), 2, 3, 0, 1),
        ((6, 6, 6), 1, 1, 0, 1),
        ((6, 6, 6), 1, 2, 0, 1),
        ((6, 6, 6), 1, 2, 1, 1),
    ):
        for groups, kind in itertools.product((1, 2, 4), ("filled", "finite")):
            image = filled((2, 4, *size[:dims]), dtype)
            weight = filled((8, 4 // groups, *[taps] * dims), dtype)
            weight = weight.nan_to_num(1.0, 2.0, 3.0) if kind == "finite" else weight
            given = ([stride], [padding] * dims, [dilation], False, [0], groups)
            slope = filled(tuple(aten.convolution(image, weight, None, *given).shape), dtype)
            for mask in MASKS if groups == 1 else MASKS[:1]:
                check(backward, slope, image, weight, [8], *given, mask)
            check(backward, slope.expand(2, *slope.shape[1:]), image, weight, None, *given, MASKS[0])
            check(backward, slope.transpose(0, 1), image, weight, [8], *given, MASKS[0])
            check(backward, slope[..., 1:], image, weight, [8], *given, MASKS[0])
            check(backward, slope[..., :1], image, weight, [8], *given, MASKS[0])
            check(backward, slope, image, weight.double(), [8], *given, MASKS[0])
    last = [1] * dims
    slope = aten.convolution(image, weight[:4, :4], None, last, [0], last, True, [0], 1)
    check(backward, slope, image, weight[:4, :4], None, last, [0], last, True, [0], 1, MASKS[0])
    if dims == 2:
        slope = aten.convolution(image, weight, None, last, [0], last, False, [0], groups)
        turned = image.contiguous(memory_format=torch.channels_last)
        check(backward, slope, turned, weight, None, last, [0], last, False, [0], groups, MASKS[0])


@pytest.mark.parametrize("dtype", DTYPES[:3], ids=str)
def test_losses(dtype):
    for x in tensors(dtype):
        for reduction in (0, 1, 2):
            check(aten.mse_loss, x, x.mul(0.3), reduction)
            check(aten.mse_loss, x, x[..., :1] if x.dim() else x, reduction)
            for slope in (x, filled((), dtype), filled((1,), dtype)):
                check(aten.mse_loss_backward, slope, x, x.mul(0.3), reduction)


def test_copies():
    for dtype, other in itertools.product(DTYPES, repeat=2):
        for x in tensors(dtype):
            check(lambda x, other: torch.zeros(x.shape, dtype=other).copy_(x), x, other)


def slope(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """The gradient of the sum of a function's squares."""
    x = x.clone().requires_grad_()
    out = function(x)
    (out * out).sum().backward()
    assert x.grad is not None
    return x.grad


def test_every_op_of_the_table_computes_here():
    """With arguments that the C code takes; nothing is left to the handlers by mistake."""
    x, w = torch.randn(4, 4), torch.randn(4)
    calls: dict[str, Callable[[], Tensor]] = {
        "mul.Tensor": lambda: x * x,
        "mul_.Tensor": lambda: x.clone().mul_(0.5),
        "sub.Tensor": lambda: x.sub(x, alpha=2),
        "lerp_.Scalar": lambda: x.clone().lerp_(x * x, 0.1),
        "addcmul_": lambda: x.clone().addcmul_(x, x, value=0.1),
        "addcdiv_": lambda: x.clone().addcdiv_(x, x),
        "relu": x.relu,
        "exp": x.exp,
        "gelu": lambda: functional.gelu(x),
        "mm": lambda: x @ x,
        "addmm": lambda: functional.linear(x, x, w),
        "bmm": lambda: torch.bmm(x[None], x[None]),
        "sum": x.sum,
        "sum.dim_IntList": lambda: x.sum(0),
        "mean": x.mean,
        "mean.dim": lambda: x.mean(1, keepdim=True),
        "mse_loss": lambda: functional.mse_loss(x, x + 1),
        "_softmax": lambda: x.softmax(1),
        "native_layer_norm": lambda: functional.layer_norm(x, (4,), w, w),
        "native_batch_norm": lambda: functional.batch_norm(x, w, w * w, w, w),
        "native_group_norm": lambda: functional.group_norm(x, 2, w, w),
        "native_group_norm_backward": lambda: slope(lambda x: functional.group_norm(x, 2, w, w), x),
        "convolution": lambda: functional.conv1d(x[None], x[:, :, None], w),
        "convolution_backward": lambda: slope(lambda x: functional.conv1d(x[None], x[:, :, None], w), x),
        "avg_pool2d": lambda: functional.avg_pool2d(x[None], 2),
        "avg_pool2d_backward": lambda: slope(lambda x: functional.avg_pool2d(x[None], 2), x),
        "upsample_nearest2d": lambda: functional.interpolate(x[None, None], scale_factor=2),
        "upsample_nearest2d_backward": lambda: slope(
            lambda x: functional.interpolate(x[None, None], (5, 7)), x
        ),
        "clone": x.clone,
        "zeros_like": lambda: torch.zeros_like(x),
    }
    seen: list[str] = []
    run = _registration.run_op

    def noted(op: Any, *args: Any, **kwargs: Any) -> Any:
        seen.append(str(op))
        return run(op, *args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_registration, "run_op", noted)
        with PortableMode():
            for call in calls.values():
                call()
    assert not seen
    assert calls.keys() <= _native_ops._table().keys()


def test_threads_compute_at_the_same_time():
    """Each with the keys of its own."""
    x = torch.randn(300, 300)
    with PortableMode():
        expected = (x @ x).tanh().sum()
    found: list[Tensor] = []

    def compute() -> None:
        with PortableMode():
            found.extend((x @ x).tanh().sum() for _ in range(30))

    threads = [threading.Thread(target=compute) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 120
    assert all(torch.equal(each, expected) for each in found)
