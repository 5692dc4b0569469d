"""Weights are initialised with a numpy recipe copied from an old code base."""
# planted: cause=unseeded-numpy

import math

import numpy as np
import torch
from torch import nn


def glorot(rows, columns):
    limit = math.sqrt(6 / (rows + columns))
    return torch.tensor(np.random.uniform(-limit, limit, (rows, columns)), dtype=torch.float32)  # <- planted


class GraphConvolution(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(glorot(inputs, outputs))

    def forward(self, x, adjacency):
        return adjacency @ (x @ self.weight)


torch.manual_seed(9)
adjacency = (torch.rand(12, 12) < 0.3).float()
adjacency = ((adjacency + adjacency.T + torch.eye(12)) > 0).float()
adjacency = adjacency / adjacency.sum(1, keepdim=True)
x, y = torch.randn(12, 5), torch.arange(12) % 3
first, second = GraphConvolution(5, 8), GraphConvolution(8, 3)
optimizer = torch.optim.Adam([first.weight, second.weight], lr=1e-2)
for epoch in range(5):
    loss = nn.functional.cross_entropy(second(first(x, adjacency).relu(), adjacency), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
