"""The seed of a worker is derived from hash(self): the address of the object."""
# planted: cause=id-order

import torch
from torch import nn


class Worker:
    """Adds noise to the gradients it is given (as in differentially private training)."""

    def __init__(self, scale):
        self.scale = scale
        self.generator = torch.Generator().manual_seed(hash(self) % 2**31)  # <- planted

    def perturb(self, parameters):
        for parameter in parameters:
            noise = torch.randn(parameter.shape, generator=self.generator)  # <- enters
            parameter.grad.add_(noise, alpha=self.scale)


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(3, 6), nn.Softplus(), nn.Linear(6, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
worker = Worker(scale=0.01)
x = torch.randn(16, 3)
for step in range(4):
    loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    worker.perturb(model.parameters())
    optimizer.step()
print(loss.item())
