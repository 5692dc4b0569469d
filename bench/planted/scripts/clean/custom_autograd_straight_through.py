"""A custom autograd function, with seeded stochastic rounding in the forward."""
# clean: a random forward with a seeded generator of its own

import torch
from torch import nn


class StochasticRound(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, generator):
        return (x + torch.rand(x.shape, generator=generator)).floor()

    @staticmethod
    def backward(ctx, grad):
        return grad, None


torch.manual_seed(0)
generator = torch.Generator().manual_seed(99)
model = nn.Linear(5, 5)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
x = torch.randn(12, 5)
for _ in range(4):
    loss = (StochasticRound.apply(model(x) * 4, generator) / 4 - x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
