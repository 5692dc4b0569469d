"""Activation checkpointing recomputes dropout with a saved generator state."""
# clean: the recomputation draws the same numbers

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)
block = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5), nn.ReLU())
head = nn.Linear(8, 2)
optimizer = torch.optim.SGD([*block.parameters(), *head.parameters()], lr=0.1)
x, y = torch.randn(10, 8), torch.arange(10) % 2
for _ in range(3):
    loss = nn.functional.cross_entropy(head(checkpoint(block, x, use_reentrant=False)), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
