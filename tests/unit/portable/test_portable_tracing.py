"""torch's tracers record the ops of the script, not what kernels call, and see portable values."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.func import functionalize, linearize
from torch.fx.experimental.proxy_tensor import make_fx

from samebits.portable._dispatch import PortableMode


@pytest.mark.parametrize("tracing", ["real", "fake", "symbolic"])
def test_a_graph_has_the_ops_of_the_script(tracing):
    """And gives the values of portable mode where it runs."""
    x, other = torch.rand(2, 3, 3)

    def dense(x):
        return torch.softmax((x @ x).exp(), 0) + torch.zeros(3).exp() + torch.rand(3) * 0

    with PortableMode():
        graph = make_fx(dense, tracing_mode=tracing)(x)
        assert torch.equal(graph(other), dense(other))
    assert all(name in graph.code for name in ("aten.mm", "aten.exp", "aten._softmax", "aten.rand"))
    assert "empty" not in graph.code


def test_what_is_computed_while_tracing_is_portable():
    """Constants of the graph among it: what does not depend on its inputs."""
    x, constant = torch.rand(2, 40, 40)
    with PortableMode():
        graph = make_fx(lambda x: x * linearized(constant))(x)
        assert torch.equal(graph(x), x * linearized(constant))


def linearized(x: torch.Tensor) -> torch.Tensor:
    """A derivative, whose point is a constant of torch's graph of it."""
    return linearize(lambda x: torch.tanh(x @ x), x)[1](torch.ones_like(x))


def test_linearize_is_the_derivative():
    """It traces with real tensors."""
    x, tangent = torch.rand(2, 20, 20, dtype=torch.float64)
    with PortableMode():
        value, derivative = linearize(lambda x: torch.tanh(x @ x), x)
        forward = torch.func.jvp(lambda x: torch.tanh(x @ x), (x,), (tangent,))
        assert torch.equal(value, forward[0])
        assert torch.equal(derivative(tangent), forward[1])


def test_sparse_ops_are_recorded_too():
    """They have plans of their own."""
    x = torch.rand(3, 3)
    with PortableMode():
        traced = make_fx(lambda x: torch.sparse.mm(x.to_sparse(), x))(x)
        assert torch.equal(traced(x + 1), torch.sparse.mm((x + 1).to_sparse(), x + 1))


def test_functionalized_code_is_recorded():
    """In-place ops become others."""
    x = torch.rand(3, 3)
    with PortableMode():
        traced = make_fx(functionalize(lambda x: x.clone().exp_().softmax(0)))(x)
        assert torch.equal(traced(x + 1), (x + 1).exp().softmax(0))


@pytest.mark.parametrize(
    "make", [lambda: torch.rand(3), lambda: torch.randperm(3), lambda: torch.linspace(0, 1, 3)]
)
def test_fake_tensors_are_made(make):
    """Without contents, and so without a key from the generator."""
    state = torch.get_rng_state()
    with PortableMode(), FakeTensorMode():
        assert make().shape == (3,)
    assert torch.equal(torch.get_rng_state(), state)


class Buffered(nn.Module):
    """Computes from a constant and a factory."""

    def __init__(self) -> None:
        super().__init__()
        self.constant = torch.arange(3.0)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Forward."""
        return x + self.constant.exp() + torch.linspace(0, 1, 3).tanh()


def test_exported_programs_run():
    """Whole, and taken apart."""
    x = torch.rand(2, 3)
    with PortableMode():
        program = torch.export.export(Buffered(), (x,))
        assert torch.equal(program.module()(x), Buffered()(x))
        assert torch.equal(program.run_decompositions().module()(x), Buffered()(x))
