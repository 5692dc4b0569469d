"""Ops in place give the bits of the ops that give new tensors, into the memory that is there."""

from __future__ import annotations

import pytest
import torch

from samebits.portable._dispatch import PortableMode

DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.float16]
CALLS = {
    "add": lambda x, y, z, end: getattr(x, f"add{end}")(y, alpha=0.3),
    "sub": lambda x, y, z, end: getattr(x, f"sub{end}")(y, alpha=0.3),
    "lerp": lambda x, y, z, end: getattr(x, f"lerp{end}")(y, 0.1),
    "lerp tensor": lambda x, y, z, end: getattr(x, f"lerp{end}")(y, z),
    "addcmul": lambda x, y, z, end: getattr(x, f"addcmul{end}")(y, z, value=-0.7),
    "addcdiv": lambda x, y, z, end: getattr(x, f"addcdiv{end}")(y, z, value=-0.7),
    "pow": lambda x, y, z, end: getattr(x.abs_() if end else x.abs(), f"pow{end}")(1.7),
    "pow tensor": lambda x, y, z, end: getattr(x.abs_() if end else x.abs(), f"pow{end}")(z),
    "exp": lambda x, y, z, end: getattr(x, f"exp{end}")(),
    "sqrt": lambda x, y, z, end: getattr(x.abs_() if end else x.abs(), f"sqrt{end}")(),
    "relu": lambda x, y, z, end: getattr(x, f"relu{end}")(),
    "silu": lambda x, y, z, end: torch.nn.functional.silu(x, inplace=bool(end)),
    "hardswish": lambda x, y, z, end: torch.nn.functional.hardswish(x, inplace=bool(end)),
    "relu6": lambda x, y, z, end: torch.nn.functional.relu6(x, inplace=bool(end)),
    "elu": lambda x, y, z, end: torch.nn.functional.elu(x, inplace=bool(end)),
    "clamp": lambda x, y, z, end: getattr(x, f"clamp{end}")(-0.5, 0.7),
    "clamp of 0": lambda x, y, z, end: getattr(x, f"clamp{end}")(min=0),
    "clamp tensor": lambda x, y, z, end: getattr(x, f"clamp{end}")(max=z),
    "clamp_max": lambda x, y, z, end: getattr(x, f"clamp_max{end}")(0.2),
    "index_put": lambda x, y, z, end: getattr(x, f"index_put{end}")(
        (torch.tensor([1, 1]),), y[:2], accumulate=True
    ),
}


def operands(dtype: torch.dtype, shape: tuple[int, ...] = (5, 700)) -> list[torch.Tensor]:
    torch.manual_seed(0)
    return [torch.randn(shape).to(dtype) for _ in range(2)] + [torch.rand(shape).add(0.5).to(dtype)]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", CALLS)
def test_the_same_bits_in_the_same_memory(name: str, dtype: torch.dtype) -> None:
    x, y, z = operands(dtype)
    with PortableMode():
        fresh = CALLS[name](x, y, z, "")
        kept = x.clone()
        out = CALLS[name](kept, y, z, "_")
    assert out is kept
    assert not torch.equal(kept, x)
    assert torch.equal(kept, fresh)


@pytest.mark.parametrize("name", CALLS)
def test_of_views_that_overlap_exactly_or_not_at_all(name: str) -> None:
    """An operand that is the tensor itself, one of its columns turned, and broadcast ones."""
    x, y, z = operands(torch.float32, (6, 6))
    with PortableMode():
        for make in (
            lambda t: (t, t, z),
            lambda t: (t.t(), y, z),
            lambda t: (t[:, ::2], y[:, :3], z[:, 1:2].expand(6, 3)),
            lambda t: (t, y[0].expand(6, 6), z),
        ):
            kept = x.clone()
            fresh = CALLS[name](*(one.clone() for one in make(x.clone())), "")
            CALLS[name](*make(kept), "_")
            assert torch.equal(make(kept)[0], fresh)


def test_a_number_out_of_the_tensor_itself() -> None:
    """`x[0]` is read before it is written."""
    x = torch.arange(1.0, 3000.0)
    with PortableMode():
        fresh = x.addcmul(x[0], x, value=2)
        kept = x.clone()
        kept.addcmul_(kept[0], kept, value=2)
    assert torch.equal(kept, fresh)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.exp_(),
        lambda x: x.add_(0.5, alpha=2),
        lambda x: x.add_(torch.ones(3), alpha=2),
        lambda x: x.addcdiv_(x, x),
        lambda x: x.pow_(0.5),
        lambda x: torch.exp(torch.ones(3), out=x),
    ],
)
def test_integers_do_not_become_floats(call) -> None:
    """Torch refuses it, and so does portable mode; what was there stays."""
    x = torch.tensor([1, 2, 3])
    with pytest.raises(RuntimeError):
        call(x)
    with PortableMode(), pytest.raises(RuntimeError):
        call(x)
    assert x.tolist() == [1, 2, 3]


def test_integers_are_added_in_place() -> None:
    x = torch.tensor([1, 2, 3])
    with PortableMode():
        assert x.add_(x, alpha=2).tolist() == [3, 6, 9]
        assert x.addcmul_(x, x, value=2).tolist() == [21, 78, 171]


OUT = {
    "sum": lambda x: (torch.sum, (x, 0), 1),
    "mean": lambda x: (torch.mean, (x, 1), 1),
    "prod": lambda x: (torch.prod, (x, 1), 1),
    "std": lambda x: (torch.std, (x, 0), 1),
    "norm": lambda x: (torch.norm, (x, 2, 0), 1),
    "logsumexp": lambda x: (torch.logsumexp, (x, 1), 1),
    "xlogy": lambda x: (torch.xlogy, (x.abs(), x.abs()), 1),
    "max": lambda x: (torch.max, (x, 1), 2),
    "median": lambda x: (torch.median, (x, 1), 2),
    "sort": lambda x: (torch.sort, (x, 1), 2),
    "topk": lambda x: (torch.topk, (x, 2, 1), 2),
    "kthvalue": lambda x: (torch.kthvalue, (x, 2, 1), 2),
    "svd": lambda x: (torch.linalg.svd, (x,), 3),
    "eigh": lambda x: (torch.linalg.eigh, (x @ x.t(),), 2),
    "inv": lambda x: (torch.linalg.inv, (x @ x.t(),), 1),
    "det": lambda x: (torch.linalg.det, (x @ x.t(),), 1),
}


@pytest.mark.parametrize("case", OUT)
def test_out_has_the_bits_of_the_result(case) -> None:
    """Whatever torch calls what is written to: `sum.IntList_out`, `max.dim_max`, `_linalg_svd.U`."""
    x = operands(torch.float32, (5, 7))[0]
    with PortableMode():
        function, arguments, count = OUT[case](x)
        expected = function(*arguments)
        results = (expected,) if count == 1 else tuple(expected)
        outs = tuple(torch.empty(0, dtype=result.dtype) for result in results)
        function(*arguments, out=outs[0] if count == 1 else outs)
    for out, result in zip(outs, results, strict=True):
        assert torch.equal(out, result)


def test_a_sum_is_computed_in_the_dtype_that_it_is_written_to() -> None:
    x = operands(torch.float32)[0] * 3
    whole, wide = torch.empty(0, dtype=torch.int64), torch.empty(0, dtype=torch.float64)
    with PortableMode():
        torch.sum(x, 0, out=whole)
        torch.sum(x, 0, out=wide)
        assert torch.equal(whole, torch.sum(x.long(), 0))
        assert torch.equal(wide, torch.sum(x.double(), 0))


@pytest.mark.parametrize(
    "call",
    [
        lambda out: torch.softmax(torch.arange(12, dtype=out.dtype).view(3, 4) / 7, 1, out=out),
        lambda out: torch.log_softmax(torch.arange(12, dtype=out.dtype).view(3, 4) / 7, 1, out=out),
        lambda out: torch.linspace(0.1, 3, 7, out=out),
        lambda out: torch.logspace(0.1, 3, 7, out=out),
        lambda out: torch.ops.aten.hann_window.out(9, out=out),
        lambda out: torch.ops.aten.adaptive_avg_pool2d.out(
            torch.arange(9, dtype=out.dtype).view(1, 3, 3), [2, 2], out=out
        ),
    ],
)
def test_what_torch_composes_or_makes_is_written_too(call: object) -> None:
    """`out` of an op that has no handler of its own: in the dtype of `out`."""
    for dtype in (torch.float32, torch.float64):
        plain, ours = torch.empty(0, dtype=dtype), torch.empty(0, dtype=dtype)
        call(plain)
        with PortableMode():
            assert call(ours) is ours
        assert ours.dtype == dtype
        torch.testing.assert_close(ours, plain)


def test_what_does_not_fit_is_not_converted() -> None:
    """As torch says it."""
    x = torch.ones(1, 3, 3)
    with PortableMode(), pytest.raises(RuntimeError, match="cast"):
        torch.ops.aten.adaptive_avg_pool2d.out(x, [2, 2], out=torch.empty(1, dtype=torch.int64))
