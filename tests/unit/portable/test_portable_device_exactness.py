"""What a GPU computes otherwise than the CPU, as functions: on the CPU they give what torch gives there."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from samebits.portable import device_exactness

COMPUTATIONS = device_exactness.computations()
DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int64]
NUMBERS = [3, 0.7, torch.tensor(0.7), torch.tensor(0.7, dtype=torch.float64), torch.tensor(7)]
OPS = {
    "div.Tensor": torch.div,
    "add.Tensor": torch.add,
    "sub.Tensor": torch.sub,
    "mul.Tensor": torch.mul,
    "floor_divide": torch.floor_divide,
}


def given(name, *args, **kwargs):
    """What is computed for an op, by torch's own kernel if that is exact."""
    base, _, overload = name.partition(".")
    op = getattr(getattr(torch.ops.aten, base), overload or "default")
    result = COMPUTATIONS[name](op, *args, **kwargs)
    return op(*args, **kwargs) if result is None else result


def same(one, other):
    """Whether dtype and bits are the same."""
    return one.dtype == other.dtype and torch.equal(
        one.contiguous().view(torch.uint8), other.contiguous().view(torch.uint8)
    )


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(50,), (1,)], ids=str)
@pytest.mark.parametrize("name", OPS)
def test_arithmetic_with_numbers(name, shape, dtype):
    """Numbers of Python and tensors without dimensions, in either place."""
    x = (torch.randn(shape) * 20).to(dtype)
    x = torch.where(x == 0, 5, x).to(dtype)
    for number in NUMBERS:
        assert same(given(name, x, number), OPS[name](x, number))
        if isinstance(number, torch.Tensor):
            assert same(given(name, number, x), OPS[name](number, x))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("mode", ["floor", "trunc"])
def test_divisions_with_a_mode(mode, dtype):
    """Rounded down, or towards zero."""
    x = (torch.randn(50) * 20).to(dtype)
    for number in NUMBERS:
        found = given("div.Tensor_mode", x, number, rounding_mode=mode)
        assert same(found, torch.div(x, number, rounding_mode=mode))


def test_a_division_by_the_reciprocal_has_other_bits():
    """What a GPU does of itself."""
    x = torch.randn(1000)
    assert not torch.equal(x * (1 / torch.tensor(3.0)), x / 3)


@pytest.mark.parametrize("dtype", DTYPES[:4], ids=str)
def test_thresholds(dtype):
    """One that the dtype does not have."""
    x = torch.tensor([0.1, 0.2, -0.1, 0.0999]).to(dtype)
    assert same(given("threshold", x, 0.1, 0.3), functional.threshold(x, 0.1, 0.3))
    expected = torch.ops.aten.threshold_backward(x + 1, x, 0.1)
    assert same(given("threshold_backward", x + 1, x, 0.1), expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.bool], ids=str)
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_scatter_keeps_the_last_value(dtype, dim):
    """With an index smaller than x and the values, and places met twice; with none; without dimensions."""
    x, src = torch.randn(6, 7, 5).mul(9).to(dtype), torch.randn(8, 8, 8).mul(9).to(dtype)
    index = torch.randint(5, (4, 5, 3))
    assert torch.equal(given("scatter.src", x, dim, index, src), x.scatter(dim, index, src))
    assert torch.equal(given("scatter.src", x, dim, index[:0], src), x)
    one, zero = x[0, 0, 0], torch.zeros((), dtype=torch.int64)
    assert torch.equal(given("scatter.src", one, 0, zero, src[0, 0, 0]), src[0, 0, 0])


def test_scatter_refuses_other_dtypes():
    x, index = torch.ones(3), torch.zeros(3, dtype=torch.int64)
    for wrong in ((x, 0, index, x.double()), (x, 0, index.float(), x)):
        with pytest.raises(RuntimeError, match="scatter"):
            given("scatter.src", *wrong)


@pytest.mark.parametrize("dim", [0, -1])
def test_index_copy_keeps_the_last_value(dim):
    x, index = torch.arange(20).view(5, 4), torch.tensor([1, 1, 3])
    source = x.index_select(dim, torch.tensor([0, 2, 3])) + 100
    assert torch.equal(given("index_copy", x, dim, index, source), x.index_copy(dim, index, source))


SIZES = {
    "exactly twice": ((8, 16), {"scale_factor": 2.1}),
    "nearly twice": ((26, 52), {"scale_factor": 2.01}),
    "long": ((8,), {"size": 220}),
    "double": ((14,), {"size": 194}),
    "smaller": ((2, 9), {"scale_factor": 4 / 3}),
    "volume": ((3, 4, 5), {"size": (7, 3, 9)}),
}


@pytest.mark.parametrize("dtype", [*DTYPES[:3], torch.uint8], ids=str)
@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize("mode", ["nearest", "nearest-exact"])
def test_nearest_neighbours(mode, name, dtype):
    """The places of the CPU, whatever lies there."""
    shape, options = SIZES[name]
    n = len(shape)
    if dtype == torch.uint8 and n != 2:
        pytest.skip("torch has none of that dtype")
    x = (torch.randn(2, 3, *shape) * 50).to(dtype)
    expected = functional.interpolate(x, mode=mode, **options)
    op = {"nearest": "upsample_nearest", "nearest-exact": "_upsample_nearest_exact"}[mode]
    scales = [options["scale_factor"]] * n if "scale_factor" in options else [None] * n
    assert torch.equal(given(f"{op}{n}d", x, expected.shape[2:], *scales), expected)


def test_pooling():
    """Images that are larger than float32 has bounds for, and in another order."""
    x = torch.randn(2, 3, 4, 3100)
    assert all(
        map(
            torch.equal,
            given("adaptive_max_pool2d", x, (3, 700)),
            torch.ops.aten.adaptive_max_pool2d(x, (3, 700)),
        )
    )
    y = x[..., :8].contiguous(memory_format=torch.channels_last)
    found, expected = given("max_pool2d_with_indices", y, 2), torch.ops.aten.max_pool2d_with_indices(y, 2)
    assert all(map(torch.equal, found, expected))
    assert [each.stride() for each in found] == [each.stride() for each in expected]
