"""Gradients of micro-batches are computed in a pool and added as they complete."""
# planted: cause=race

from concurrent.futures import ThreadPoolExecutor, as_completed

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(20, 50), nn.Tanh(), nn.Linear(50, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
micro_batches = torch.randn(12, 64, 20)


def gradients(x):
    loss = (model(x) - x.mean(1, keepdim=True)).square().mean()
    return torch.autograd.grad(loss, list(model.parameters()))


with ThreadPoolExecutor(4) as pool:
    for step in range(4):
        optimizer.zero_grad(set_to_none=False)
        totals = [torch.zeros_like(parameter) for parameter in model.parameters()]
        for done in as_completed([pool.submit(gradients, x) for x in micro_batches]):  # <- planted
            for total, grad in zip(totals, done.result()):
                total += grad  # <- enters
        for parameter, total in zip(model.parameters(), totals):
            parameter.grad = total / len(micro_batches)
        optimizer.step()
print(model[0].weight.sum().item())
