"""Workers fill a shared table; a slot is taken in order of arrival and read back by slot number."""
# planted: cause=worker-order or=race

import multiprocessing
import zlib

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Cached(Dataset):
    def __init__(self, rows):
        self.rows = rows
        self.table = torch.zeros_like(rows).share_memory_()
        self.free = multiprocessing.get_context("fork").Value("i", 0)

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        zlib.compress(bytes(range(256)) * (60 * (index % 9)))
        with self.free.get_lock():
            slot = self.free.value  # <- planted
            self.free.value += 1
        self.table[slot] = self.rows[index]
        return index


torch.manual_seed(0)
dataset = Cached(torch.randn(40, 4))
for _ in DataLoader(dataset, batch_size=2, num_workers=3, multiprocessing_context="fork"):
    pass  # the first epoch fills the cache

model = nn.GRU(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    output, _ = model(dataset.table[:, None])  # <- enters
    loss = (output[:-1, 0] - dataset.table[1:]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
