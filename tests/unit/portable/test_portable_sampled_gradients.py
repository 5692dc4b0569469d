"""Gradients of gamma and Dirichlet values in portable mode."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from samebits.portable._dispatch import PortableMode
from samebits.portable.ops.implicit_gradients import quadrature_nodes

# (alpha, x) and (x, alpha, beta) with values by mpmath, 50 digits
GAMMA = [
    (0.001, 1e-200, 4.599414466669988e-195),
    (0.03, 0.7, 18.236210680083158),
    (0.5, 0.999, 1.8773930914968746),
    (0.5, 1.5, 2.2395302530842023),
    (2.5, 0.3, 0.30557287974671365),
    (2.5, 9.0, 1.891711800090848),
    (10.0, 4.0, 0.6208054470099847),
    (10.0, 11.0, 1.0660531163565257),
    (100.0, 130.0, 1.1388044458372277),
    (1000.0, 940.0, 0.9695428834949402),
]
BETA = [
    (1e-50, 0.01, 3.0, 1.1364164320199035e-46),
    (0.3, 0.01, 3.0, 22.875534689269532),
    (0.999, 2.0, 0.02, 0.6405734270871446),
    (0.2, 2.0, 0.02, 0.24019535994102234),
    (0.4, 0.5, 0.7, 1.41271263866381),
    (0.1, 5.0, 40.0, 0.021943103507129854),
    (0.15, 5.0, 40.0, 0.026808875768143215),
    (0.98, 30.0, 0.5, 0.03327175729002114),
    (0.52, 200.0, 200.0, 0.0025536203706928284),
    (0.004, 1.5, 400.0, 0.0028773073011310714),
]


def many(low: float, high: float, seed: int) -> Tensor:
    made = torch.Generator().manual_seed(seed)
    return 10 ** torch.empty(800, dtype=torch.float64).uniform_(low, high, generator=made)


@pytest.mark.parametrize(("alpha", "x", "wanted"), GAMMA)
def test_gamma_gradients_to_the_last_digits(alpha, x, wanted):
    with PortableMode():
        found = torch._standard_gamma_grad(
            torch.tensor(alpha, dtype=torch.float64), torch.tensor(x, dtype=torch.float64)
        )
    assert found.item() == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize(("x", "alpha", "beta", "wanted"), BETA)
def test_dirichlet_gradients_to_the_last_digits(x, alpha, beta, wanted):
    given = [torch.tensor(value, dtype=torch.float64) for value in (x, alpha, alpha + beta)]
    with PortableMode():
        found = torch._dirichlet_grad(*given)
    assert found.item() == pytest.approx(wanted, rel=1e-12)


def test_gamma_gradients_are_close_to_torch():
    """Torch's own are off by 1e-3 in the tails."""
    alpha = many(-3, 3, 1)
    x = torch._standard_gamma(alpha, generator=torch.Generator().manual_seed(2))
    plain = torch._standard_gamma_grad(alpha, x)
    with PortableMode():
        ours = torch._standard_gamma_grad(alpha, x)
        small = torch._standard_gamma_grad(alpha.float(), x.float())
    torch.testing.assert_close(ours, plain, rtol=5e-3, atol=0)
    assert float((ours / plain - 1).abs().quantile(0.9)) < 1e-4
    torch.testing.assert_close(small.double(), ours, rtol=1e-3, atol=1e-30)


def test_dirichlet_gradients_are_close_to_torch():
    alpha, beta = many(-3, 3, 1), many(-3, 3, 2)
    made = torch.Generator().manual_seed(3)
    x, y = torch._standard_gamma(alpha, generator=made), torch._standard_gamma(beta, generator=made)
    x = x / (x + y)
    usual = (x > 1e-290) & (x < 1)
    given = (x[usual], alpha[usual], (alpha + beta)[usual])
    plain = torch._dirichlet_grad(*given)
    with PortableMode():
        ours = torch._dirichlet_grad(*given)
        ends = torch._dirichlet_grad(torch.tensor([0.0, 1.0]), torch.ones(2), torch.full((2,), 1.5))
    torch.testing.assert_close(ours, plain, rtol=1e-2, atol=0)
    assert float((ours / plain - 1).abs().quantile(0.9)) < 5e-4
    assert bool(ends.isfinite().all())


@pytest.mark.parametrize("make", ["Gamma", "Beta", "Dirichlet", "StudentT", "Chi2"])
def test_distributions_give_gradients(make):
    a = torch.tensor([0.4, 3.0, 20.0], requires_grad=True)
    others = {"Gamma": (torch.ones(3),), "Beta": (torch.tensor(2.0),)}.get(make, ())
    torch.manual_seed(0)
    with PortableMode():
        torch.distributions.__dict__[make](a, *others).rsample().square().sum().backward()
    assert bool(a.grad.isfinite().all())
    assert bool((a.grad != 0).all())


def test_the_mean_of_gradients_is_the_gradient_of_the_mean():
    alpha = torch.full((4000,), 2.5, dtype=torch.float64, requires_grad=True)
    torch.manual_seed(0)
    with PortableMode():
        torch._standard_gamma(alpha).sum().backward()
    assert float(alpha.grad.mean()) == pytest.approx(1.0, abs=0.05)


def test_nodes_integrate_polynomials():
    assert len(quadrature_nodes()) == 48
    for power in (0, 1, 10, 95):
        assert sum(weight * node**power for node, weight in quadrature_nodes()) == pytest.approx(
            1 / (power + 1), rel=1e-14
        )
