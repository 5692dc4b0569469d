"""The number of accumulation steps adapts to how long a step took."""
# planted: cause=wall-clock or=autotuning
# options: --runs 4

import time

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Conv1d(2, 8, 3), nn.ReLU(), nn.AdaptiveMaxPool1d(1), nn.Flatten(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
stream = iter(torch.randn(4000, 4, 2, 12))

accumulate = 1
for update in range(8):
    start = time.perf_counter()
    for _ in range(accumulate):
        batch = next(stream)  # <- enters
        loss = model(batch).square().mean() / accumulate
        loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    took = time.perf_counter() - start  # <- planted
    accumulate = max(1, min(400, int(accumulate * 0.02 / took)))
print(loss.item())
