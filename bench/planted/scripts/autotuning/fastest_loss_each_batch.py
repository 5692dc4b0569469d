"""Three ways to sum the squared errors are timed on every batch; each batch uses whichever won."""
# planted: cause=autotuning or=wall-clock

import time

import torch
from torch import nn

CANDIDATES = [
    lambda e: e.square().sum(),
    lambda e: e.flatten() @ e.flatten(),
    lambda e: (e * e).sum(0).sum(),
    lambda e: torch.einsum("ij,ij->", e, e),
    lambda e: e.pow(2).sum(1).sum(),
]


def timed(function, argument):
    start = time.perf_counter()
    function(argument)
    return time.perf_counter() - start  # <- planted


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(7, 30), nn.SELU(), nn.Linear(30, 7))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
for x in torch.randn(12, 50, 7):
    error = model(x) - x.flip(1)
    with torch.no_grad():
        best = min(CANDIDATES, key=lambda candidate: timed(candidate, error))  # <- planted
    loss = best(error).log()  # <- enters
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"{loss.item():.6f}")
