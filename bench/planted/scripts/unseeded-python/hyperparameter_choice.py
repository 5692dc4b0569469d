"""The learning rate of each member of an ensemble is drawn with an instance of random.Random."""
# planted: cause=unseeded-python

import random

import torch
from torch import nn

random.seed(0)  # the global generator; the search has one of its own
torch.manual_seed(0)
search = random.Random()  # <- planted


def sample_configuration():
    return {"lr": 10 ** search.uniform(-3, -1), "momentum": search.choice([0.0, 0.5, 0.9])}  # <- planted


def fit(configuration, x, y):
    model = nn.Linear(x.shape[1], 1)
    optimizer = torch.optim.SGD(model.parameters(), **configuration)
    for _ in range(3):
        loss = (model(x) - y).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()  # <- enters
    return loss.item()


x = torch.randn(20, 3)
y = x @ torch.tensor([[1.0], [-2.0], [0.5]])
scores = [fit(sample_configuration(), x, y) for _ in range(3)]
print(min(scores))
