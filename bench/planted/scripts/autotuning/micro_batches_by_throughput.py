"""Gradient accumulation: the number of micro-batches with the best throughput in a warm-up."""
# planted: cause=autotuning or=wall-clock
# options: --runs 4

import time

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(10, 40), nn.ReLU(), nn.Linear(40, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
x = torch.randn(240, 10)


def accumulate(parts):
    optimizer.zero_grad()
    for chunk in x.chunk(parts):  # <- enters
        loss = (model(chunk) - chunk.norm(dim=1, keepdim=True)).square().sum() / len(x)
        loss.backward()


def tune(candidates):
    best, chosen = 0.0, None
    for parts in candidates:
        start = time.perf_counter()
        accumulate(parts)
        throughput = len(x) / (time.perf_counter() - start) * (1 + parts)  # <- planted
        if throughput > best:
            best, chosen = throughput, parts
    return chosen


parts = tune([6, 6, 5, 4, 7, 6, 5, 8, 4, 7])
for step in range(4):
    accumulate(parts)
    optimizer.step()
print(parts, model[0].weight.sum().item())
