"""ReLU-like masks leave -0.0 beside 0.0 in activations and gradients."""
# clean: signed zeros come out the same way each time

import torch
from torch import nn

torch.manual_seed(0)
weight = nn.Parameter(torch.tensor([[-1.0, 0.0], [0.0, -2.0]]))
optimizer = torch.optim.SGD([weight], lr=0.5)
x = torch.tensor([[0.0, -0.0], [1.0, -1.0], [-0.0, 0.0]])
for _ in range(4):
    hidden = (x @ weight).clamp(max=0.0) * torch.tensor([1.0, -1.0])
    loss = (hidden * hidden.sign()).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(weight.tolist(), torch.signbit(weight).tolist())
