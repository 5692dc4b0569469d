"""Hogwild: threads update one model without a lock."""
# planted: cause=race

import threading

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 1))
shards = torch.randn(4, 30, 16, 10)


def work(batches):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for x in batches:
        loss = (model(x) - x.sum(1, keepdim=True)).square().mean()  # <- planted
        grads = torch.autograd.grad(loss, list(model.parameters()))
        for parameter, grad in zip(model.parameters(), grads):
            parameter.grad = grad
        optimizer.step()  # <- planted


threads = [threading.Thread(target=work, args=(shard,)) for shard in shards]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(sum(parameter.sum() for parameter in model.parameters()).item())
