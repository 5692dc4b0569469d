"""A soft histogram loss built with index_put_(accumulate=True)."""
# planted: cause=nondeterministic-kernel in=histogram.py

import torch
from histogram import weighted_histogram
from torch import nn

torch.manual_seed(0)
pixels = torch.rand(200_000)
weights = torch.rand(200_000)
wanted = torch.full((16,), 1 / 16)
scale = nn.Parameter(torch.ones(16))
optimizer = torch.optim.SGD([scale], lr=0.5)
for step in range(3):
    histogram = weighted_histogram(pixels, weights, bins=16)
    loss = (scale * histogram - wanted).square().sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(scale.sum().item())
