"""Adaptive maximum pooling to a size that does not divide."""
# planted: cause=nondeterministic-kernel

import torch
from torch import nn
from torch.nn import functional

torch.manual_seed(0)
images = torch.randn(16, 8, 45, 45, device="cuda")
model = nn.Conv2d(8, 16, 3, padding=1).cuda()


def compute():
    pooled = functional.adaptive_max_pool2d(model(images), 32)  # <- planted
    return pooled.tanh().square().mean()


optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(5):
    loss = compute()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
