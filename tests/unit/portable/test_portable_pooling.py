"""Pooling: C against the reference, the ops against torch."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from opinfo import check_op

from samebits.portable.backends.library import load
from samebits.portable.kernels.reductions import window_mean, window_spread
from samebits.portable.ops.pooling import _adaptive, _windows
from samebits.portable.reference.reductions import window_mean as mean
from samebits.portable.reference.reductions import window_spread as spread

CPU = torch.device("cpu")


@pytest.fixture(params=[("scalar", 1), ("avx2", 2), ("avx512", 1), ("neon", 2)], ids=str)
def kernels(request):
    found = load()
    isa, threads = request.param
    if found is None or not found.select(isa):
        pytest.skip(f"no {isa} here")
    found.set_threads(threads)
    yield found
    found.select("")
    found.set_threads(1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("divisor", [0, 7])
def test_c_gives_the_bits_of_the_reference(kernels, dtype, divisor):
    rng = np.random.default_rng(3)
    for dims in [
        (
            _windows(9, 3, 2, 1, (True, True), CPU),
            _windows(8, 2, 3, 1, (True, False), CPU),
            _windows(11, 3, 1, 1, (False, True), CPU),
        ),
        (_adaptive(1, 1, CPU), _adaptive(10, 4, CPU), _adaptive(7, 9, CPU)),
    ]:
        x = rng.standard_normal((3, *(d.size for d in dims))).astype(dtype)
        x.flat[5], x.flat[40] = np.inf, -0.0
        bounds = [(d.first.tolist(), d.end.tolist(), d.counts.tolist()) for d in dims]
        expected = np.zeros((3, *(len(first) for first, _, _ in bounds)), dtype)
        mean(x, expected, bounds, divisor)
        found = window_mean(torch.from_numpy(x), dims, divisor).numpy()
        assert found.tobytes() == expected.tobytes()
        back = np.zeros_like(x)
        spread(back, expected, bounds, divisor)
        assert window_spread(torch.from_numpy(expected), dims, divisor).numpy().tobytes() == back.tobytes()


OPS = [
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
    "adaptive_max_pool2d",
    "adaptive_max_pool3d",
    "max_unpool1d",
    "max_unpool2d",
    "max_unpool3d",
]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("name", OPS)
def test_ops_agree_with_torch(name, dtype):
    check_op(f"nn.functional.{name}", dtype, limit=8)


@pytest.mark.parametrize("n", [2, 3])
def test_fractional_pooling_agrees_with_torch(n):
    from samebits.portable._dispatch import PortableMode

    x, samples = torch.randn(2, 3, *[9] * n), torch.rand(2, 3, n)
    op = torch.ops.aten.fractional_max_pool2d if n == 2 else torch.ops.aten.fractional_max_pool3d
    plain = op(x, [2] * n, [5] * n, samples)
    with PortableMode():
        ours = op(x, [2] * n, [5] * n, samples)
    assert torch.equal(ours[0], plain[0])
    assert torch.equal(ours[1], plain[1])
