"""Points are averaged per voxel with scatter_add."""
# planted: cause=nondeterministic-kernel

import torch
from torch import nn

torch.manual_seed(0)
points = torch.randn(300_000, 16, device="cuda")
voxel = torch.randint(500, (300_000,), device="cuda")
target = torch.randn(500, 1, device="cuda")
model = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 1)).cuda()


def compute():
    hidden = model[:2](points)
    index = voxel[:, None].expand(-1, 16)
    sums = torch.zeros(500, 16, device="cuda").scatter_add(0, index, hidden)  # <- planted
    return (model[2](sums / 600) - target).square().mean()


optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(5):
    loss = compute()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
