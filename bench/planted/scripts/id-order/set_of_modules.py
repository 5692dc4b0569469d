"""Layers to initialise are collected in a set; modules hash by address."""
# planted: cause=id-order

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(*[nn.Linear(5, 5) for _ in range(8)])
fresh = {layer for layer in model}
for layer in fresh:  # <- planted
    nn.init.xavier_uniform_(layer.weight)  # <- enters

optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.randn(10, 5)
for _ in range(3):
    loss = (model(x) - x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
