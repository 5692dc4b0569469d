"""Train and test are split by np.random.permutation, seeded nowhere."""
# planted: cause=unseeded-numpy

import random

import numpy as np
import torch
from torch import nn


def set_seed(seed):
    random.seed(seed)
    torch.manual_seed(seed)


def split(count, test_share):
    order = np.random.permutation(count)  # <- planted
    cut = int(count * test_share)
    return order[cut:], order[:cut]


set_seed(123)
features = torch.randn(60, 7)
targets = features @ torch.randn(7, 1)
train_rows, test_rows = split(60, 0.25)
model = nn.Linear(7, 1)
optimizer = torch.optim.LBFGS(model.parameters(), max_iter=4)


def closure():
    optimizer.zero_grad()
    loss = (model(features[train_rows]) - targets[train_rows]).square().mean()  # <- enters
    loss.backward()
    return loss


for _ in range(3):
    optimizer.step(closure)
with torch.no_grad():
    print("test", (model(features[test_rows]) - targets[test_rows]).square().mean().item())
