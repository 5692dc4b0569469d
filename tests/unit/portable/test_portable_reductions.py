"""Reductions, running sums and softmax in C against the reference, and what must not matter to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch

from samebits.portable.backends.library import load
from samebits.portable.kernels import reductions
from samebits.portable.kernels.reductions import running
from samebits.portable.ops import reductions as ops
from samebits.portable.reference import reductions as reference

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import Tensor

ISAS = [isa for isa in ("avx512", "avx2", "neon", "scalar") if load() is not None and load().select(isa)]  # type: ignore[union-attr]
DTYPES = [torch.float32, torch.float64]
CASES = [
    ((), None),
    ((7,), None),
    ((0,), None),
    ((4, 0), [0]),
    ((5000,), None),
    ((3, 300), [1]),
    ((300, 5), [0]),
    ((600, 70), [0]),
    ((4, 3, 10, 11), [0, 2, 3]),
    ((5, 6, 7, 8), [1, 3]),
    ((5, 6, 70), [0, 1]),
    ((2, 5, 6, 70), [1]),
    ((3, 1, 4), [1]),
    ((270, 3, 2), [0]),
]


@pytest.fixture(params=ISAS)
def isa(request: pytest.FixtureRequest) -> Iterator[str]:
    """Each instruction set that this machine has."""
    kernels = load()
    assert kernels is not None
    kernels.select(request.param)
    yield request.param
    kernels.select("")
    kernels.set_threads(1)


def same_bits(one: Tensor, other: Tensor) -> bool:
    """NaNs are alike."""
    words = torch.int32 if one.dtype == torch.float32 else torch.int64
    equal = one.contiguous().view(words) == other.contiguous().view(words)
    return one.shape == other.shape and bool((equal | (one.isnan() & other.isnan())).all())


def values(shape: tuple[int, ...], dtype: torch.dtype, seed: int) -> Tensor:
    """Of many sizes; seed 3 has infinities, NaN, zeros of both signs and subnormals."""
    rng = np.random.default_rng(seed)
    x = torch.from_numpy(np.asarray(rng.standard_normal(shape) * 10.0 ** rng.integers(-2, 3, shape))).to(
        dtype
    )
    if seed == 3 and x.numel() > 4:
        flat = x.view(-1)
        special = [0.0, -0.0, 1e-40, float("inf"), float("nan")]
        for i, value in enumerate(special):
            flat[(i * 37) % flat.numel()] = value
    return x


def laid_out(x: Tensor, layout: int) -> Tensor:
    """The same values, in another order in memory."""
    if layout == 1 and x.dim() > 1:
        return x.transpose(0, -1).contiguous().transpose(0, -1)
    if layout == 2:
        return torch.stack([x, x], -1)[..., 0]
    return x


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("threads", [1, 2])
def test_c_is_the_reference(isa: str, threads: int, dtype: torch.dtype) -> None:
    kernels = load()
    assert kernels is not None
    kernels.set_threads(threads)
    for case, (shape, given) in enumerate(CASES):
        if dtype == torch.float64 and (np.prod(shape) > 2000 or isa != ISAS[0]):
            continue  # the reference's fma is slow there
        x, b = (laid_out(values(shape, dtype, seed), case % 3) for seed in (1 + 2 * (case % 2), 2))
        dims = reductions.axes(x.dim(), given)
        mean = torch.from_numpy(np.asarray(reference.sum_over(b.numpy(), dims)))
        arrays = x.numpy(), b.numpy(), mean.numpy()
        for name, ours, theirs in (
            ("sum_over", (x,), arrays[:1]),
            ("sum_magnitudes_over", (x,), arrays[:1]),
            ("product_over", (x,), arrays[:1]),
            ("sum_squares_over", (x,), arrays[:1]),
            ("sum_products_over", (x, b), arrays[:2]),
            ("sum_deviations_over", (x, mean), (arrays[0], arrays[2])),
            ("sum_cross_over", (x, mean, b), (arrays[0], arrays[2], arrays[1])),
        ):
            got = getattr(reductions, name)(*ours, given)
            want = torch.from_numpy(np.asarray(getattr(reference, name)(*theirs, dims)))
            assert same_bits(got, want), (name, shape, given, got, want)


def pieces(dtype: torch.dtype) -> Iterator[tuple[Tensor, list[int]]]:
    """Values that lie in several pieces: what is summed, and the dimensions."""
    yield values((20, 6, 16), dtype, 3), [0, 2]  # in lines of 16
    yield values((7, 5, 48), dtype, 1), [0, 2]
    yield values((3, 4, 240), dtype, 1), [0, 2]  # chunks that begin in one piece
    yield values((3, 5, 512), dtype, 1), [0, 2]  # chunks in one piece
    yield values((40, 300, 32), dtype, 1), [0, 2]  # outputs in two blocks
    yield values((20, 6, 17), dtype, 3), [0, 2]  # neither
    yield values((6, 3, 32), dtype, 1)[:, 1], [0, 1]  # nothing is kept
    yield values((4, 3, 2, 5, 16), dtype, 1), [0, 2, 4]
    yield values((40, 777), dtype, 3), [1]  # long rows
    yield values((130, 777), dtype, 3), [0]  # columns in several blocks
    yield values((1, 40), dtype, 3), [0]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("threads", [1, 2])
def test_pieces_are_the_reference(isa: str, threads: int, dtype: torch.dtype) -> None:
    kernels = load()
    assert kernels is not None, isa
    kernels.set_threads(threads)
    for x, dims in pieces(dtype):
        b = x.flip(0)
        mean = reductions.mean_over(x, dims)
        arrays = x.numpy(), mean.numpy(), b.numpy()
        got, want = reductions.sum_over(x, dims), reference.sum_over(arrays[0], dims)
        assert same_bits(got, torch.from_numpy(np.asarray(want))), (x.shape, dims)
        if dtype == torch.float32:  # the reference's fma is slow in float64
            got, want = reductions.sum_cross_over(x, mean, b, dims), reference.sum_cross_over(*arrays, dims)
            assert same_bits(got, torch.from_numpy(np.asarray(want))), (x.shape, dims)


@pytest.mark.parametrize("dtype", DTYPES)
def test_long_sums_are_the_reference(isa: str, dtype: torch.dtype) -> None:
    kernels = load()
    assert kernels is not None
    for size in (16 * 256, 16 * 256 * 3 + 5, 70000, 70000 + 256):
        x = values((size,), dtype, 4)
        want = torch.from_numpy(np.asarray(reference.sum_over(x.numpy(), [0])))
        for threads in (1, 2):
            kernels.set_threads(threads)
            assert same_bits(reductions.sum_over(x, None), want)
            assert same_bits(reductions.sum_over(torch.stack([x] * 9, 1), 0)[3], want)


def test_zeros_are_positive_sums(isa: str) -> None:
    assert not reductions.sum_over(torch.full((3, 5), -0.0), 1).signbit().any(), isa


def test_reduction_is_the_same_alone_and_among_others(isa: str) -> None:
    x = values((64, 777), torch.float32, 5)
    whole = reductions.sum_over(x, 1)
    assert all(same_bits(reductions.sum_over(x[i : i + 1], 1)[0], whole[i]) for i in range(64)), isa


def test_keepdim_and_names_of_dims() -> None:
    x = values((3, 4, 5), torch.float32, 1)
    assert reductions.sum_over(x, [0, -1], keepdim=True).shape == (1, 4, 1)
    assert reductions.sum_over(x, []).shape == ()
    with pytest.raises(IndexError):
        reductions.sum_over(x, 3)
    with pytest.raises(RuntimeError):
        reductions.sum_over(x, [0, -3])


@pytest.mark.parametrize("size", [1000, 32768])
@pytest.mark.parametrize("name", ["sum", "norm", "var", "mean"])
def test_no_less_accurate_than_torch(name: str, size: int) -> None:
    x = torch.from_numpy(np.random.default_rng(8).standard_normal((200, size))).float() + 0.3
    plain = {
        "sum": lambda v: v.sum(1),
        "norm": lambda v: torch.linalg.vector_norm(v, dim=1),
        "var": lambda v: v.var(1),
        "mean": lambda v: v.mean(1),
    }[name]
    ours = {
        "sum": lambda v: reductions.sum_over(v, 1),
        "norm": lambda v: reductions.sum_squares_over(v, 1).sqrt(),
        "var": lambda v: ops.var(v, [1]),
        "mean": lambda v: reductions.mean_over(v, 1),
    }[name]
    exact = plain(x.double())
    errors = [((found.double() - exact).abs() / exact.abs()).mean() for found in (ours(x), plain(x))]
    assert errors[0] <= errors[1] * 1.02 + 1e-9


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("product", [False, True])
def test_running_sums_are_the_reference(dtype: torch.dtype, product: bool) -> None:  # noqa: FBT001
    for shape, dim in (((), 0), ((50,), 0), ((0, 3), 1), ((4, 60, 5), 1), ((3, 200), 0), ((70, 3, 90), 0)):
        x = values(shape, dtype, 3) if not product else values(shape, dtype, 3).clamp(-2, 2)
        lines = x.view(shape or (1,)).numpy()
        want = torch.from_numpy(reference.running(lines, dim, product=product).copy()).view(shape)
        assert same_bits(running(laid_out(x, 1), dim, product=product), want)
