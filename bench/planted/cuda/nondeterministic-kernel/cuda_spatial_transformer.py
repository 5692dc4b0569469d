"""A spatial transformer learns where to sample."""
# planted: cause=nondeterministic-kernel

import torch
from torch import nn
from torch.nn import functional

torch.manual_seed(0)
images = torch.randn(16, 3, 64, 64, device="cuda")
model = nn.ModuleList([nn.Conv2d(3, 8, 3, padding=1), nn.Linear(3 * 64 * 64, 6)]).cuda()


def compute():
    theta = model[1](images.flatten(1)).view(-1, 2, 3)
    grid = functional.affine_grid(theta, [16, 8, 64, 64], align_corners=False)
    sampled = functional.grid_sample(model[0](images), grid, align_corners=False)  # <- planted
    return sampled.square().mean()


optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(5):
    loss = compute()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
