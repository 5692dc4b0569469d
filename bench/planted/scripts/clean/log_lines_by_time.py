"""Prints the loss every few milliseconds: the number of log lines differs from run to run."""
# clean: reads that only feed the log are taken by the clock

import time

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(6, 6)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.randn(20, 6)
last = time.monotonic()
for step in range(40):
    loss = (model(x) - x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if time.monotonic() - last > 0.01:
        print(step, loss.item())
        last = time.monotonic()
