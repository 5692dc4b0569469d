"""Two threads train a model each, with a generator each."""
# clean: the threads share nothing

import threading

import torch
from torch import nn

results = {}


def train(name, seed):
    generator = torch.Generator().manual_seed(seed)
    weight = nn.Parameter(torch.randn(4, 4, generator=generator))
    optimizer = torch.optim.SGD([weight], lr=0.1)
    for _ in range(6):
        x = torch.randn(8, 4, generator=generator)
        loss = (x @ weight - x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    results[name] = weight.detach()


threads = [threading.Thread(target=train, args=(name, seed)) for name, seed in (("a", 1), ("b", 2))]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print((results["a"] - results["b"]).norm().item())
