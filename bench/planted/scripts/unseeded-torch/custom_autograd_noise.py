"""A custom autograd function adds noise to the gradient, from a generator seeded with a draw of its own."""
# planted: cause=unseeded-torch

import torch
from torch import nn

torch.manual_seed(0)
private = torch.Generator()
private.seed()  # <- planted


class NoisyGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        return grad + 0.01 * torch.randn(grad.shape, generator=private)  # <- enters


model = nn.Sequential(nn.Linear(4, 8), nn.ReLU())
head = nn.Linear(8, 1)
optimizer = torch.optim.SGD([*model.parameters(), *head.parameters()], lr=0.1)
x = torch.randn(12, 4)
for _ in range(4):
    loss = (head(NoisyGradient.apply(model(x))) - 1).square().mean()  # <- enters
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
