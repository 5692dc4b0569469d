"""Returns of an agent by cumsum."""
# planted: cause=nondeterministic-kernel

import torch
from torch import nn

torch.manual_seed(0)
rewards = torch.randn(64, 100_000, device="cuda")
model = nn.Linear(1, 1).cuda()


def compute():
    totals = torch.cumsum(model(rewards.reshape(-1, 1)).view(64, -1).flatten(), 0)  # <- planted
    return totals.tanh().square().mean()


optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(5):
    loss = compute()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
