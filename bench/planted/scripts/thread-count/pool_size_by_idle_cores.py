"""A loss in slices: as many as cores seem idle."""
# planted: cause=thread-count or=environment
# options: --runs 4

import os

import torch
from torch import nn


def idle_slots():
    """Room for threads, from the load of the last moment (running tasks, all tasks, last pid)."""
    with open("/proc/loadavg", encoding="utf-8") as load:  # <- planted
        running, last = load.read().split()[3:5]  # <- planted
    return 2 + (int(running.split("/")[0]) + int(last)) % (4 * (os.cpu_count() or 1))


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
x = torch.randn(600, 6)
slices = x.chunk(idle_slots())  # <- enters
for step in range(3):
    parts = [(model(part) - part[:, :1]).square().sum() for part in slices]
    loss = torch.stack(parts).sum() / len(x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
