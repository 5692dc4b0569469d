"""Loss scaling, and ranges of powers, against torch."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from samebits.portable._dispatch import PortableMode


def scaled_training():
    """Five steps, one of them with an infinite loss."""
    model = nn.Linear(3, 2)
    with torch.no_grad():
        model.weight.copy_(torch.arange(6.0).reshape(2, 3) / 7)
        model.bias.zero_()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**12, growth_interval=2)
    scales = []
    for step in range(5):
        optimizer.zero_grad()
        loss = model(torch.ones(4, 3)).pow(2).mean() * (float("inf") if step == 2 else 1)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        scales.append(scaler.get_scale())
    return model.weight.detach(), scales


def test_loss_scaling():
    weight, scales = scaled_training()
    with PortableMode():
        portable_weight, portable_scales = scaled_training()
    assert scales == portable_scales == [2.0**12, 2.0**13, 2.0**12, 2.0**12, 2.0**13]
    torch.testing.assert_close(portable_weight, weight)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64], ids=str)
def test_ranges_of_powers(dtype):
    with PortableMode():
        found = torch.logspace(-1, 4, 11, dtype=dtype), torch.logspace(0, 5, 6, base=2, dtype=dtype)
    expected = torch.logspace(-1, 4, 11, dtype=dtype), torch.logspace(0, 5, 6, base=2, dtype=dtype)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other)
