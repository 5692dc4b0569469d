"""The loss becomes NaN halfway; NaNs are equal in both runs."""
# clean: NaN is not equal to itself, but its bits are

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e30)
x = torch.randn(10, 3)
for step in range(5):
    loss = model(x).pow(4).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
