"""A signal is upsampled linearly."""
# planted: cause=nondeterministic-kernel

import torch
from torch import nn
from torch.nn import functional

torch.manual_seed(0)
signals = torch.randn(16, 8, 1000, device="cuda")
model = nn.Conv1d(8, 8, 5, padding=2).cuda()


def compute():
    long = functional.interpolate(model(signals), size=7777, mode="linear")  # <- planted
    return long.tanh().square().mean()


optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(5):
    loss = compute()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
