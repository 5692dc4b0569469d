"""Residual blocks are skipped at random (stochastic depth), decided with Python's generator."""
# planted: cause=unseeded-python

import random

import torch
from torch import nn

torch.manual_seed(4)


class Residual(nn.Module):
    def __init__(self, width, keep):
        super().__init__()
        self.inner = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.GELU())
        self.keep = keep

    def forward(self, x):
        if self.training and random.random() > self.keep:  # <- planted
            return x
        return x + self.inner(x)  # <- enters


model = nn.Sequential(*[Residual(16, keep=1 - 0.1 * i) for i in range(6)], nn.Linear(16, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
x = torch.randn(10, 16)
y = x.prod(1, keepdim=True).tanh()
for step in range(6):
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad(set_to_none=False)
    loss.backward()
    optimizer.step()
print(loss.item())
