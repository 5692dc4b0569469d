"""A RandomState made per dataset "to be safe", without an argument."""
# planted: cause=unseeded-numpy

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class NoisyDigits(Dataset):
    """Eight by eight patterns with salt noise."""

    def __init__(self, count):
        self.random = np.random.RandomState()  # <- planted
        self.patterns = np.eye(8, dtype=np.float32)
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        picture = np.roll(self.patterns, index % 4, axis=1).copy()
        picture[self.random.rand(8, 8) < 0.1] = 1.0  # <- planted
        return picture, index % 4


np.random.seed(5)
torch.manual_seed(5)
model = nn.Sequential(nn.Flatten(), nn.Linear(64, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
for pictures, labels in DataLoader(NoisyDigits(32), batch_size=8):  # <- enters
    loss = nn.functional.cross_entropy(model(pictures), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item())
