"""A "download" that fails at random is tried until it succeeds."""
# clean: the number of tries differs, what arrives does not

import random

import torch
from torch import nn


def fetch(number):
    if random.random() < 0.5:
        raise ConnectionError
    return [number / 10, number % 3 / 3, 1.0]


def with_retries(function, argument):
    while True:
        try:
            return function(argument)
        except ConnectionError:
            continue


torch.manual_seed(0)
x = torch.tensor([with_retries(fetch, number) for number in range(16)])
model = nn.Sequential(nn.Linear(3, 4), nn.Sigmoid(), nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
for _ in range(4):
    loss = (model(x)[:, 0] - x[:, 0]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
