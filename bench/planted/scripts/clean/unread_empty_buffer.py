"""A module registers a buffer made with torch.empty that nothing ever reads."""
# clean: uninitialised memory that no operation reads
# options: --stress

import torch
from torch import nn


class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(5, 2)
        self.register_buffer("scratch", torch.empty(16))

    def forward(self, x):
        return self.linear(x)


torch.manual_seed(0)
model = Head()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, y = torch.randn(8, 5), torch.arange(8) % 2
for _ in range(3):
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
