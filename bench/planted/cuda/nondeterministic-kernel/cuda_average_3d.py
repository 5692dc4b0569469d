"""Overlapping average pooling of volumes."""
# planted: cause=nondeterministic-kernel

import torch
from torch import nn
from torch.nn import functional

torch.manual_seed(0)
volumes = torch.randn(4, 4, 24, 24, 24, device="cuda")
model = nn.Conv3d(4, 8, 3, padding=1).cuda()


def compute():
    pooled = functional.avg_pool3d(model(volumes), 3, stride=1)  # <- planted
    return pooled.tanh().square().mean()


optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(5):
    loss = compute()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
