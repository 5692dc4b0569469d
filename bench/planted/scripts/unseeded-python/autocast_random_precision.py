"""Mixed precision where each micro-batch tosses a coin for autocast, "to regularise"."""
# planted: cause=unseeded-python

import random

import numpy as np
import torch
from torch import nn

np.random.seed(0)
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(12, 24), nn.GELU(), nn.Linear(24, 3))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
x, y = torch.randn(4, 10, 12), torch.randint(0, 3, (4, 10))
for step in range(3):
    optimizer.zero_grad()
    for part in range(4):
        low = random.random() < 0.5  # <- planted
        with torch.autocast("cpu", dtype=torch.float16, enabled=low):
            logits = model(x[part])  # <- enters
        loss = nn.functional.cross_entropy(logits.float(), y[part]) / 4
        loss.backward()
    optimizer.step()
print(loss.item())
