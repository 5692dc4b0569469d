"""The classic: seed everything with the time."""
# planted: cause=wall-clock

import random
import time

import numpy as np
import torch
from torch import nn


def seed_everything(seed=None):
    if seed is None:
        seed = int(time.time() * 1000) % 2**32  # <- planted
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)  # <- enters


seed_everything()
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 2))  # <- enters
optimizer = torch.optim.Adam(model.parameters())
x = torch.ones(8, 4).cumsum(0)
for step in range(4):
    loss = model(x).softmax(1)[:, 0].log().neg().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
