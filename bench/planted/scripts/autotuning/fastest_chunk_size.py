"""Before each epoch, the chunk size of a blocked reduction is chosen by timing."""
# planted: cause=autotuning or=wall-clock
# options: --runs 4

import time

import torch
from torch import nn

torch.manual_seed(0)


def chunked_mean(x, size):
    return torch.stack([chunk.sum(0) for chunk in x.split(size)]).sum(0) / len(x)


def fastest(x, sizes):
    timings = {}
    for size in sizes:
        start = time.perf_counter()
        for _ in range(3):
            chunked_mean(x, size)
        timings[size] = time.perf_counter() - start  # <- planted
    return min(timings, key=timings.get)  # <- planted


x = torch.randn(1000, 12)
model = nn.Linear(12, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(6):
    size = fastest(x, sizes=[252, 260, 271, 283, 294, 305, 316, 331])
    loss = chunked_mean(model(x).square(), size).log().sum()  # <- enters
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"{loss.item():.9f}")
