"""Random crops with `random.randint`; torch and numpy are seeded, Python is not."""
# planted: cause=unseeded-python

import random

import numpy as np
import torch
from torch import nn

np.random.seed(0)
torch.manual_seed(0)


def random_crop(images, size):
    top = random.randint(0, images.shape[2] - size)  # <- planted
    left = random.randint(0, images.shape[3] - size)  # <- planted
    return images[:, :, top : top + size, left : left + size]  # <- enters


images, labels = torch.randn(24, 1, 28, 28), torch.randint(0, 3, (24,))
model = nn.Sequential(nn.Conv2d(1, 4, 5), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 12 * 12, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(4):
    loss = nn.functional.cross_entropy(model(random_crop(images, 16)), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
