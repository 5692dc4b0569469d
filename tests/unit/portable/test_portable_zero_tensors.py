"""Tensors without memory that stand for zeros, as second derivatives return them."""

from __future__ import annotations

import pytest
import torch

import samebits

OPS = {
    "dot": lambda z: torch.dot(z[0], torch.ones(4)),
    "dot, second": lambda z: torch.dot(torch.ones(4), z[1]),
    "vdot": lambda z: torch.vdot(torch.ones(4), z[2]),
    "mul by a number": lambda z: torch.ops.aten.mul.Scalar(z, 2.0),
    "add a number": lambda z: torch.ops.aten.add.Scalar(z, 2.0),
    "mm": lambda z: z.t() @ torch.ones(4, 4),
    "list": lambda z: torch.cat([z, torch.ones(1, 4), z[1:]]),
    "bits": lambda z: z.view(torch.int32),
    "bits of a part": lambda z: z[1:].view(torch.int16),
    "clone": lambda z: z[1:].clone(),
    "copy": lambda z: torch.ones(4, 4).copy_(z),
    "sum": lambda z: z[1:].sum(),
    "exp": lambda z: z.exp(),
    "softmax": lambda z: z.softmax(0),
    "item": lambda z: torch.tensor(z[1, 2].item()),
}


def zeros():
    """The second derivative of `abs`."""
    x = torch.ones(4, 4, requires_grad=True)
    (first,) = torch.autograd.grad(x.abs(), x, torch.ones(4, 4), create_graph=True)
    return torch.autograd.grad(first, x, torch.ones(4, 4))[0]


@pytest.mark.parametrize("op", OPS.values(), ids=OPS)
def test_ops_compute_with_zeros(op):
    """After a call with a written tensor, whose plan is known then, and before one."""
    with samebits.portable():
        given = zeros()
        wanted = op(torch.zeros(4, 4))
        assert given._is_zerotensor()
        found = op(given)

    assert torch.equal(found, wanted)


def test_torch_refuses_to_write_to_them():
    with samebits.portable(), pytest.raises(RuntimeError, match="immutable"):
        zeros().mul_(2)


@pytest.mark.parametrize("optimizer", [torch.optim.SGD, torch.optim.AdamW])
def test_gradients_can_be_such_zeros(optimizer):
    parameter = torch.nn.Parameter(torch.ones(4, 4))
    with samebits.portable():
        parameter.grad = zeros()
        optimizer([parameter], lr=0.1, weight_decay=0.0).step()

    assert torch.equal(parameter.detach(), torch.ones(4, 4))
