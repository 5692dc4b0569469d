"""index_select of few rows, many times."""
# planted: cause=nondeterministic-kernel

import torch
from torch import nn

torch.manual_seed(0)
index = torch.randint(100, (400_000,), device="cuda")
model = nn.Linear(16, 100).cuda()
scale = torch.rand(400_000, 1, device="cuda")


def compute():
    rows = torch.index_select(model.weight, 0, index)  # <- planted
    return (rows * scale).tanh().square().mean()


optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(5):
    loss = compute()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
