"""Least squares and the exponential of matrices in portable mode."""

from __future__ import annotations

import pytest
import torch
from opinfo import check_op

from samebits.portable._dispatch import PortableMode


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize(("name", "variant"), [("linalg.lstsq", ""), ("linalg.lstsq", "grad_oriented")])
def test_ops_agree_with_torch(name, variant, dtype):
    check_op(name, dtype, variant=variant, limit=5)


@pytest.mark.parametrize("driver", [None, "gels", "gelsd", "gelss"])
@pytest.mark.parametrize("shape", [(5, 3), (2, 5, 3), (3, 5), (0, 5, 3)])
def test_least_squares_give_what_torch_gives(driver, shape):
    torch.manual_seed(0)
    a, b = torch.randn(shape), torch.randn(*shape[:-1], 2)
    plain = torch.linalg.lstsq(a, b, driver=driver)
    with PortableMode():
        ours = torch.linalg.lstsq(a, b, driver=driver)
    for one, other in zip(ours, plain, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


def test_least_squares_of_dependent_columns_are_the_shortest():
    a, b = torch.ones(4, 2, dtype=torch.float64), torch.arange(4.0, dtype=torch.float64)[:, None]
    with PortableMode():
        found = torch.linalg.lstsq(a, b)
    torch.testing.assert_close(found.solution, torch.full((2, 1), 0.75, dtype=torch.float64))
    assert found.rank.item() == 1


@pytest.mark.parametrize("scale", [0.0, 1e-6, 0.1, 1.0, 5.0])
@pytest.mark.parametrize("shape", [(3, 3), (2, 5, 5), (1, 1), (0, 3, 3), (2, 0, 0)])
def test_matrix_exp_is_close_to_torch(scale, shape):
    torch.manual_seed(0)
    a = torch.randn(shape, dtype=torch.float64) * scale
    plain = torch.linalg.matrix_exp(a)
    with PortableMode():
        ours = torch.linalg.matrix_exp(a)
    size = float(plain.abs().max()) if plain.numel() else 1.0
    torch.testing.assert_close(ours, plain, rtol=0, atol=1e-13 * size)


def test_matrix_exp_of_a_batch_is_that_of_each_and_not_finite_ones_are_nan():
    torch.manual_seed(0)
    a = torch.randn(3, 4, 4) * torch.tensor([0.01, 1.0, 20.0])[:, None, None]
    with PortableMode():
        together = torch.linalg.matrix_exp(a)
        for one, other in zip(together, a, strict=True):
            assert torch.equal(one, torch.linalg.matrix_exp(other))
        assert bool(torch.linalg.matrix_exp(torch.full((2, 2), torch.inf)).isnan().all())


def test_matrix_exp_has_a_gradient():
    a = torch.randn(3, 3, dtype=torch.float64, requires_grad=True, generator=torch.Generator().manual_seed(1))
    with PortableMode():
        assert torch.autograd.gradcheck(torch.linalg.matrix_exp, (a,))
