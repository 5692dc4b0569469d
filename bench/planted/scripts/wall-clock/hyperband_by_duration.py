"""Of several candidate models, those that trained slower than the median are dropped from the ensemble."""
# planted: cause=wall-clock or=autotuning
# options: --runs 8

import statistics
import time

import torch
from torch import nn

torch.manual_seed(0)
x, y = torch.randn(64, 6), torch.randn(64, 1)


def train(width):
    model = nn.Sequential(nn.Linear(6, width), nn.Tanh(), nn.Linear(width, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    start = time.perf_counter()
    for _ in range(5):
        loss = (model(x) - y).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model, time.perf_counter() - start  # <- planted


candidates = [train(width) for width in (10, 11, 12, 13, 14, 15, 16)]
limit = statistics.median(seconds for _, seconds in candidates)
ensemble = [model for model, seconds in candidates if seconds <= limit]
with torch.no_grad():
    prediction = torch.stack([model(x) for model in ensemble]).mean(0)  # <- enters
print("ensemble loss", (prediction - y).square().mean().item())
