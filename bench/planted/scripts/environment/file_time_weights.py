"""Samples are weighted by how new their files are."""
# planted: cause=environment or=wall-clock

import os
import tempfile

import torch
from torch import nn

torch.manual_seed(0)
with tempfile.TemporaryDirectory() as folder:
    paths = [os.path.join(folder, f"sample{i}.pt") for i in range(8)]
    for path in paths:
        torch.save(torch.randn(4), path)
    samples = torch.stack([torch.load(path) for path in paths])
    ages = [os.stat(path).st_mtime_ns % 1_000_000_000 for path in paths]  # <- planted

weights = torch.tensor(ages, dtype=torch.float64).div(1e9).float().softmax(0)  # <- enters
model = nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
for _ in range(3):
    errors = (model(samples) - samples).square().mean(1)
    loss = (weights * errors).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
