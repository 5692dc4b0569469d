"""A dataset pads each sample with np.empty_like, in the workers of the loader."""
# planted: cause=uninitialized
# options: --stress

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Windows(Dataset):
    def __init__(self, series, width):
        self.series, self.template = series, np.zeros(width)

    def __len__(self):
        return len(self.series)

    def __getitem__(self, index):
        window = np.empty_like(self.template)  # <- planted
        recent = self.series[max(0, index - len(window) + 1) : index + 1]
        window[-len(recent) :] = recent
        return np.clip(np.nan_to_num(window), -2, 2).astype(np.float32), np.float32(self.series[index])


torch.manual_seed(0)
data = Windows(np.sin(np.arange(64) / 5), width=60)
model = nn.Sequential(nn.Linear(60, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for windows, targets in DataLoader(data, batch_size=16, num_workers=1):  # <- enters
    loss = nn.functional.mse_loss(model(windows)[:, 0], targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
