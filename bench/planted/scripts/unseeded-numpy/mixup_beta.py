"""Mixup draws its coefficient from numpy, which only the data preparation would have seeded."""
# planted: cause=unseeded-numpy

import numpy as np
import torch
from torch import nn


def mixup(x, y, alpha=0.4):
    share = np.random.beta(alpha, alpha)  # <- planted
    order = torch.randperm(len(x))
    return share * x + (1 - share) * x[order], share * y + (1 - share) * y[order]  # <- enters


torch.manual_seed(0)
x = torch.randn(32, 3, 8, 8)
y = nn.functional.one_hot(torch.randint(0, 5, (32,)), 5).float()
model = nn.Sequential(nn.Conv2d(3, 6, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(6, 5))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for step in range(4):
    inputs, targets = mixup(x, y)
    loss = -(targets * model(inputs).log_softmax(1)).sum(1).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, float(loss.detach()))
