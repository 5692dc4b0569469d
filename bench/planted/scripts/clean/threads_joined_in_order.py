"""A pool of threads computes gradients, which are added in the order of submission."""
# clean: threads finish in any order, their results are reduced in a fixed one

from concurrent.futures import ThreadPoolExecutor

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
parameters = list(model.parameters())
optimizer = torch.optim.SGD(parameters, lr=0.1)
micro_batches = torch.randn(8, 20, 8)


def gradients(x):
    return torch.autograd.grad((model(x) - x.mean(1, keepdim=True)).square().mean(), parameters)


with ThreadPoolExecutor(4) as pool:
    for _ in range(3):
        results = list(pool.map(gradients, micro_batches))
        for parameter, grads in zip(parameters, zip(*results)):
            parameter.grad = torch.stack(grads).sum(0)
        optimizer.step()
print(parameters[0].sum().item())
