"""A cache is keyed by `repr(object)`, which holds the address, and its keys are sorted."""
# planted: cause=id-order in=registry.py

import torch
from registry import Registry
from torch import nn

torch.manual_seed(0)
registry = Registry()
for angle in range(6):
    registry.add(lambda x, a=angle: x.roll(a, dims=-1) * (1 + a / 10))  # <- enters

model = nn.Linear(6, 6)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
x = torch.randn(9, 6)
for epoch in range(2):
    for transform in registry.in_order():
        loss = (model(transform(x)) - x).square().mean()  # <- enters
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print(loss.item())
