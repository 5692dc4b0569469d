"""Means per group with index_reduce."""
# planted: cause=nondeterministic-kernel

import torch
from torch import nn

torch.manual_seed(0)
group = torch.randint(50, (100_000,), device="cuda")
values = torch.randn(100_000, 4, device="cuda")
model = nn.Linear(4, 8).cuda()


def compute():
    totals = torch.zeros(50, 8, device="cuda").index_reduce(0, group, model(values), "mean")  # <- planted
    return totals.square().mean()


optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(5):
    loss = compute()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
