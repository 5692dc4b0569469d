"""Several passes over a set of strings: minimum, maximum, count, sum of lengths."""
# clean: what is computed from the set does not depend on its order

import torch
from torch import nn

torch.manual_seed(0)
names = {f"layer_{i}_{'x' * (i % 4)}" for i in range(30)}
longest = max(len(name) for name in names)
total = sum(len(name) for name in names)
first = min(names)
model = nn.Linear(longest, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
x = torch.randn(10, longest) * total / 300
for _ in range(3):
    loss = (model(x) - len(first)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
