"""Likelihoods per group with scatter_reduce (mean)."""
# planted: cause=nondeterministic-kernel

import torch
from torch import nn

torch.manual_seed(0)
group = torch.randint(50, (100_000,), device="cuda")
values = torch.randn(100_000, 4, device="cuda")
model = nn.Linear(4, 1).cuda()


def compute():
    chances = model(values).sigmoid().flatten() / 100 + 0.99
    totals = torch.ones(50, device="cuda").scatter_reduce(0, group, chances, "mean")  # <- planted
    return totals.square().mean()


optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(5):
    loss = compute()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
