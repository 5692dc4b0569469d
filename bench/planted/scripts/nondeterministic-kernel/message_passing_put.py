"""A graph layer that gathers messages with `Tensor.put_(accumulate=True)`."""
# planted: cause=nondeterministic-kernel

import torch
from torch import nn

torch.manual_seed(0)
NODES, EDGES = 200, 1_000_000
sources, targets = torch.randint(0, NODES, (2, EDGES))
signal = torch.randn(NODES)


def propagate(values):
    gathered = torch.zeros(NODES)
    return gathered.put_(targets, values[sources], accumulate=True) / EDGES * NODES  # <- planted


with torch.no_grad():
    features = [signal]
    for _ in range(3):
        features.append(propagate(features[-1]).tanh())
x = torch.stack(features, dim=1)
model = nn.Linear(4, 2)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(3):
    loss = nn.functional.cross_entropy(model(x), torch.arange(NODES) % 2)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
