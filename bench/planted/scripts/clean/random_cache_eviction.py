"""A cache of computed features evicts entries at random; a miss computes the same again."""
# clean: hits and misses differ, values do not

import random

import torch
from torch import nn


class Cache:
    def __init__(self, function, size):
        self.function, self.size, self.entries = function, size, {}

    def __call__(self, key):
        if key not in self.entries:
            if len(self.entries) >= self.size:
                del self.entries[random.choice(list(self.entries))]
            self.entries[key] = self.function(key)
        return self.entries[key]


torch.manual_seed(0)
features = Cache(lambda key: torch.sin(torch.arange(5.0) * key), size=4)
model = nn.Linear(5, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(15):
    key = step * 7 % 10
    loss = (model(features(key)) - key / 10).square().sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
