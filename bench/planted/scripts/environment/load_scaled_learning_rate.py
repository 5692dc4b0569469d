"""The learning rate is scaled down while the machine is busy, "to be nice to others"."""
# planted: cause=environment

import torch
from torch import nn


def niceness():
    """How busy the machine is, from the kernel's counters."""
    with open("/proc/stat", encoding="utf-8") as statistics:  # <- planted
        ticks = [int(word) for word in statistics.readline().split()[1:5]]  # <- planted
    return 1 - ticks[3] / sum(ticks)


torch.manual_seed(0)
model = nn.Sequential(nn.Conv2d(1, 3, 3), nn.ReLU(), nn.Flatten(), nn.Linear(3 * 16, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, y = torch.randn(8, 1, 6, 6), torch.arange(8) % 2
for step in range(4):
    for group in optimizer.param_groups:
        group["lr"] = 0.1 * (1 - 0.5 * niceness())
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()  # <- enters
print(loss.item())
