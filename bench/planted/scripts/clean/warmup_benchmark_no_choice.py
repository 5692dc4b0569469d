"""A warm-up measures the speed of the model for a while and prints it; nothing is chosen."""
# clean: the benchmark runs by the clock, on a copy of the model

import copy
import time

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 6))
x = torch.randn(16, 6)

trial, count = copy.deepcopy(model), 0
until = time.monotonic() + 0.1
with torch.no_grad():
    while time.monotonic() < until:
        trial(x)
        count += 1
print(f"{count / 0.1:.0f} forward passes per second")

optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(4):
    loss = nn.functional.mse_loss(model(x), x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
