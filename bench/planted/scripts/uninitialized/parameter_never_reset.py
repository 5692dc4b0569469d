"""A layer of one's own: the weight is made with torch.empty and reset_parameters is never called."""
# planted: cause=uninitialized
# options: --stress

import torch
from torch import nn


class Scale(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(width))  # <- planted

    def reset_parameters(self):
        nn.init.ones_(self.weight)

    def forward(self, x):
        return x * self.weight.clamp(-1, 1)  # <- planted


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 7), Scale(7), nn.Linear(7, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
x = torch.randn(20, 4)
for step in range(3):
    loss = (model(x) - 1).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
