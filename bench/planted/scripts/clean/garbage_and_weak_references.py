"""Objects die at different times, a finaliser counts them, and a weak cache loses entries."""
# clean: garbage collection does not touch the numbers

import gc
import random
import weakref

import torch
from torch import nn


class Features:
    def __init__(self, number):
        self.number, self.me = number, self  # a cycle: only the collector frees it
        self.values = torch.cos(torch.arange(4.0) * number)


torch.manual_seed(0)
cache = weakref.WeakValueDictionary()
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(12):
    number = step % 4
    features = cache.get(number) or cache.setdefault(number, Features(number))
    loss = model(features.values).square().sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if random.random() < 0.4:
        gc.collect()
print(len(cache), "alive; loss", loss.item())
