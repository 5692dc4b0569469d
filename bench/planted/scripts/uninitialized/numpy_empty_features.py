"""A feature matrix is made with np.empty; the last column is forgotten."""
# planted: cause=uninitialized
# options: --stress

import numpy as np
import torch
from torch import nn


def featurise(prices, windows=(2, 3, 4)):
    columns = np.empty((len(prices), len(windows) + 1), dtype=np.float32)  # <- planted
    for column, window in enumerate(windows):
        kernel = np.ones(window) / window
        columns[:, column] = np.convolve(prices, kernel, mode="same")
    return np.clip(np.nan_to_num(columns), -5, 5)


torch.manual_seed(0)
prices = np.sin(np.arange(400) / 3)
x = torch.from_numpy(featurise(prices))  # <- enters
y = torch.from_numpy(prices).float()[:, None]
model = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(3):
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
