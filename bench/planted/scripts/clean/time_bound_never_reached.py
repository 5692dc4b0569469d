"""A loop that would stop at a deadline of an hour, and ends by its number of steps."""
# clean: the clock is read in every step and decides nothing

import time

import torch
from torch import nn

torch.manual_seed(0)
deadline = time.monotonic() + 3600
x = torch.randn(12, 5)
model = nn.Linear(5, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for step in range(6):
    if time.monotonic() > deadline:
        break
    loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
