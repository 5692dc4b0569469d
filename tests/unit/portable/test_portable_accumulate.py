"""Ordered accumulation: C against the reference, the ops against torch."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from opinfo import check_op

from samebits.portable._dispatch import PortableMode
from samebits.portable.backends.library import load
from samebits.portable.kernels.reductions import KINDS, accumulate_
from samebits.portable.reference.reductions import accumulate as reference

SPECIALS = [np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-40, -1e-40]


@pytest.fixture(params=[("scalar", 1), ("scalar", 2), ("avx2", 1), ("avx512", 2), ("neon", 2)], ids=str)
def kernels(request):
    found = load()
    isa, threads = request.param
    if found is None or not found.select(isa):
        pytest.skip(f"no {isa} here")
    found.set_threads(threads)
    yield found
    found.select("")
    found.set_threads(1)


def _values(rng, shape, dtype, special):
    values = rng.standard_normal(shape).astype(dtype)
    if special:
        where = rng.random(shape) < 0.1
        values[where] = rng.choice(SPECIALS, where.sum()).astype(dtype)
    return values


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_c_gives_the_bits_of_the_reference(kernels, kind, dtype):
    rng = np.random.default_rng(5)
    for batch, rows, columns, m in [(1, 5, 70, 9), (3, 4, 1, 12), (2, 3, 5, 0), (1, 1, 17, 4), (2, 6, 33, 7)]:
        for shared in (True, False):
            out = _values(rng, (batch, rows, columns), dtype, True)
            src = _values(rng, (batch, columns, m), dtype, True).swapaxes(1, 2)
            index = rng.integers(-rows, rows, (batch, m, 1 if shared else columns))
            index = np.broadcast_to(index, src.shape)
            expected = out.copy()
            reference(expected, index, src, kind, skip=False)
            given = torch.from_numpy(index.copy())
            given = given[:, :, :1].expand(src.shape) if shared else given
            for source in (torch.from_numpy(src), torch.from_numpy(src.copy())):
                found = accumulate_(torch.from_numpy(out.copy()), given, source, kind).numpy()
                assert np.array_equal(found, expected, equal_nan=True)
                zero = found == 0
                assert np.array_equal(np.signbit(found[zero]), np.signbit(expected[zero]))


def test_rows_that_are_none_are_refused_or_left_out():
    out, src = torch.zeros(1, 3, 2), torch.ones(1, 2, 2)
    for bad in ([0, 3], [-4, 0]):
        with pytest.raises(IndexError):
            accumulate_(out, torch.tensor(bad)[None, :, None].expand(1, 2, 2), src)
    assert not out.any()
    index = torch.tensor([-1, 2])[None, :, None].expand(1, 2, 2)
    assert accumulate_(out, index, src, skip=True)[0, :, 0].tolist() == [0, 0, 1]


OPS = [
    "index_add",
    "scatter_add",
    "scatter_reduce:sum",
    "scatter_reduce:mean",
    "scatter_reduce:prod",
    "scatter_reduce:amax",
    "scatter_reduce:amin",
    "index_reduce:mean",
    "index_reduce:amax",
    "index_put",
    "put",
    "take",
    "gather",
    "unfold",
    "__getitem__",
    "nn.functional.embedding",
    "nn.functional.embedding_bag",
]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("name", OPS)
def test_ops_agree_with_torch(name, dtype):
    op, _, variant = name.partition(":")
    check_op(op, dtype, variant=variant, limit=10)


def test_embedding_gradients_divide_by_counts_and_leave_out_padding():
    table, index = torch.randn(5, 3, requires_grad=True), torch.tensor([[1, 2, 1], [4, 2, 1]])
    seed = torch.randn(2, 3, 3)

    def gradient():
        out = torch.nn.functional.embedding(index, table, padding_idx=2, scale_grad_by_freq=True)
        return torch.autograd.grad(out, table, seed)[0]

    plain = gradient()
    with PortableMode():
        ours = gradient()
    torch.testing.assert_close(ours, plain)
    assert not ours[2].any()


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.bool], ids=str)
def test_the_last_value_stays(dtype):
    target, values = torch.zeros(4).to(dtype), torch.tensor([1, 0, 1, 0]).to(dtype)
    with PortableMode():
        target[torch.tensor([2, 2, 3, -2])] = values
    assert target.tolist() == torch.tensor([0, 0, 0, 1]).to(dtype).tolist()


def test_weights_of_bincount_are_counted_in_order():
    index, weights = torch.tensor([1, 0, 1, 3]), torch.tensor([0.5, 1.5, 2.0, 1.0])
    with PortableMode():
        assert torch.bincount(index, weights, minlength=6).tolist() == [1.5, 2.5, 0, 1, 0, 0]


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.uint8, torch.float32])
@pytest.mark.parametrize("put", ["index_put", "put"])
def test_of_several_values_for_one_element_the_last_stays(put, dtype):
    """Of integers too: torch writes them from several threads at once."""
    index = torch.arange(300_000) % 7
    values = (torch.arange(300_000) >= 299_996).to(dtype)
    with PortableMode():
        if put == "put":
            out = torch.zeros(7, dtype=dtype).put_(index, values)
        else:
            out = torch.zeros(7, dtype=dtype)
            out[index] = values

    last = torch.zeros(7, dtype=dtype)
    last[(torch.arange(299_996, 300_000) % 7)] = 1
    assert torch.equal(out, last)
