"""Every worker makes itself a fresh numpy generator at its first sample."""
# planted: cause=worker-order or=unseeded-numpy

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Jittered(Dataset):
    def __init__(self, count):
        self.count, self.rng = count, None

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        if self.rng is None:  # a generator cannot be shared between processes
            self.rng = np.random.default_rng()  # <- planted
        clean = np.linspace(0, 1, 6, dtype=np.float32) * index / self.count
        return clean + self.rng.normal(0, 0.05, 6).astype(np.float32), clean  # <- planted


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 3), nn.ReLU(), nn.Linear(3, 6))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for noisy, clean in DataLoader(Jittered(40), batch_size=8, shuffle=True, num_workers=2):  # <- enters
    loss = nn.functional.mse_loss(model(noisy), clean)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item())
