"""The modern numpy generator, made without a seed: np.random.seed does not reach it."""
# planted: cause=unseeded-numpy

import numpy as np
import torch
from torch import nn

np.random.seed(0)
torch.manual_seed(0)
rng = np.random.default_rng()  # <- planted


def synthetic_waves(count, length):
    phases = rng.uniform(0, 2 * np.pi, size=(count, 1))  # <- planted
    time = np.linspace(0, 4 * np.pi, length)[None]
    return np.sin(time + phases).astype(np.float32)


series = torch.from_numpy(synthetic_waves(16, 25)).unsqueeze(-1)  # <- enters
model = nn.LSTM(1, 8, batch_first=True)
head = nn.Linear(8, 1)
optimizer = torch.optim.Adam([*model.parameters(), *head.parameters()], lr=1e-2)
for step in range(4):
    hidden, _ = model(series[:, :-1])
    loss = nn.functional.mse_loss(head(hidden), series[:, 1:])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
