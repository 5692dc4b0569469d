"""Products of groups, as layers of experts have them: each is a product of its own."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from samebits.portable._dispatch import PortableMode

grouped_mm = getattr(torch.nn.functional, "grouped_mm", None)
pytestmark = pytest.mark.skipif(grouped_mm is None, reason="this torch has no grouped_mm")
DTYPES = [torch.float32, torch.bfloat16, torch.float16]
ENDS = [3, 3, 11, 12]  # one group is empty


def normal(*shape: int, dtype: torch.dtype) -> Tensor:
    """Numbers whose products are not exact."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(3)).to(dtype)


def ends(*values: int) -> Tensor:
    """As torch wants them."""
    return torch.tensor(values, dtype=torch.int32)


@pytest.mark.parametrize("dtype", DTYPES)
def test_groups_of_rows(dtype):
    """Of a matrix, each by a matrix of its own; nothing is left of the memory of rows in no group."""
    x, experts = normal(14, 304, dtype=dtype), normal(4, 304, 24, dtype=dtype)
    with PortableMode():
        out = grouped_mm(x, experts, offs=ends(*ENDS))
        expected = [x[0:3] @ experts[0], x[3:11] @ experts[2], x[11:12] @ experts[3], x.new_zeros(2, 24)]
        assert torch.equal(out, torch.cat(expected))
    assert out.dtype == dtype
    assert torch.allclose(out[:12], grouped_mm(x, experts, offs=ends(*ENDS))[:12], rtol=2e-2, atol=2e-2)


def test_groups_of_columns():
    """Of the second matrix."""
    x, y = normal(4, 5, 304, dtype=torch.float32), normal(304, 12, dtype=torch.float32)
    with PortableMode():
        out = grouped_mm(x, y, offs=ends(*ENDS))
        expected = [x[0] @ y[:, 0:3], x[2] @ y[:, 3:11], x[3] @ y[:, 11:12]]
        assert torch.equal(out, torch.cat(expected, 1))


def test_groups_of_k():
    """Each counts its k from 0, and one of none is 0."""
    x, y = normal(8, 304, dtype=torch.float32), normal(304, 12, dtype=torch.float32)
    with PortableMode():
        out = grouped_mm(x, y, offs=ends(100, 100, 304))
        expected = torch.stack([x[:, :100] @ y[:100], torch.zeros(8, 12), x[:, 100:] @ y[100:]])
        assert torch.equal(out, expected)
        x, y = normal(2, 4, 304, dtype=torch.float32), normal(2, 304, 12, dtype=torch.float32)
        assert torch.equal(grouped_mm(x, y), x @ y)


@pytest.mark.parametrize("dtype", DTYPES)
def test_gradients_are_those_of_a_loop(dtype):
    """The gradient of a matrix is a product over the rows of its group."""
    x, experts = normal(12, 24, dtype=dtype), normal(4, 16, 24, dtype=dtype)
    found, expected = [], []
    with PortableMode():
        for out in (found, expected):
            a, b = x.clone().requires_grad_(), experts.clone().requires_grad_()
            if out is found:
                y = grouped_mm(a, b.mT, offs=ends(*ENDS))
            else:
                cuts = [slice(0, 3), slice(3, 3), slice(3, 11), slice(11, 12)]
                y = torch.cat([a[at] @ b[i].T for i, at in enumerate(cuts)])
            torch.sin(y).sum().backward()
            out += [y, a.grad, b.grad]
        assert all(torch.equal(one, other) for one, other in zip(found, expected, strict=True))


@pytest.mark.parametrize(
    "call",
    [
        grouped_mm,
        lambda x, w: grouped_mm(x.double(), w.double(), offs=ends(2, 4, 6, 8)),
        lambda x, w: grouped_mm(x[:, :7].contiguous(), w[:, :7], offs=ends(2, 4, 6, 8)),
        lambda x, w: grouped_mm(x, w, offs=ends(2, 8)),
        lambda x, w: grouped_mm(x, w, offs=ends(2, 4, 6, 8), bias=torch.ones(8)),
    ],
)
def test_what_torch_does_not_take(call):
    """With its own errors."""
    x, w = torch.ones(8, 16), torch.ones(4, 16, 8)
    with pytest.raises(RuntimeError) as own:
        call(x, w)
    with PortableMode(), pytest.raises(RuntimeError) as ours:
        call(x, w)
    assert str(ours.value).splitlines()[0] == str(own.value).splitlines()[0]
