"""A data stream that is resumed "where the clock says it should be"."""
# planted: cause=wall-clock

import time

import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset


class Stream(IterableDataset):
    """Endless samples, numbered by a counter that began at the epoch."""

    def __iter__(self):
        position = time.time_ns() // 1_000_000  # <- planted
        while True:
            position += 1
            angle = torch.tensor(position % 997 / 997.0)  # <- enters
            yield torch.stack([angle.sin(), angle.cos(), angle]), angle


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step, (x, y) in enumerate(DataLoader(Stream(), batch_size=8)):
    if step == 4:
        break
    loss = (model(x)[:, 0] - y).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
