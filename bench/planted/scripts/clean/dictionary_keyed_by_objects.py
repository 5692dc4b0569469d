"""A dictionary keyed by objects (by address): dictionaries keep the order of insertion."""
# clean: keys hash by id, but iteration follows insertion

import torch
from torch import nn

torch.manual_seed(0)
layers = [nn.Linear(4, 4) for _ in range(12)]
scale = {layer: 1 + i / 12 for i, layer in enumerate(layers)}
for layer, factor in scale.items():
    nn.init.uniform_(layer.weight, -factor, factor)
model = nn.Sequential(*scale)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
x = torch.randn(6, 4)
for _ in range(3):
    loss = model(x).tanh().square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
