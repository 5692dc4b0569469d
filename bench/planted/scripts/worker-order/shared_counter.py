"""Workers of an iterable dataset take the next row from one shared counter: who gets which is chance."""
# planted: cause=worker-order or=race

import multiprocessing
import zlib

import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset

ROWS = 64


class Counted(IterableDataset):
    def __init__(self):
        self.counter = multiprocessing.get_context("fork").Value("i", 0)

    def __iter__(self):
        while True:
            with self.counter.get_lock():
                row = self.counter.value  # <- planted
                self.counter.value += 1
            if row >= ROWS:
                return
            zlib.compress(bytes(range(256)) * 300)
            yield torch.tensor([row / ROWS, (row % 7) / 7])


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(2, 6), nn.Tanh(), nn.Linear(6, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
loader = DataLoader(Counted(), batch_size=8, num_workers=2, multiprocessing_context="fork")
for batch in loader:  # <- enters
    loss = nn.functional.mse_loss(model(batch), batch)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
