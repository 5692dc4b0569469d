"""numpy and Python draw without a seed, but what they draw goes nowhere near the model."""
# clean: unseeded draws whose values are not used

import random

import numpy as np
import torch
from torch import nn

torch.manual_seed(0)
jitter = np.random.rand(5)
greeting = random.choice(["hello", "good day", "ahoy"])
print(greeting, jitter.round(2))

model = nn.Sequential(nn.Conv1d(1, 3, 3), nn.ReLU(), nn.Flatten(), nn.Linear(18, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, y = torch.randn(6, 1, 8), torch.arange(6) % 2
for _ in range(3):
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
