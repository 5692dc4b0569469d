"""Workers take file names from a common queue; each keeps running statistics of what it has seen."""
# planted: cause=worker-order or=race

import multiprocessing
import queue
import zlib

import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset


class Stolen(IterableDataset):
    def __init__(self, rows):
        self.rows = rows
        self.names = multiprocessing.get_context("fork").Queue()
        for number in range(len(rows)):
            self.names.put(number)

    def __iter__(self):
        mean = torch.zeros(self.rows.shape[1])
        while True:
            try:
                number = self.names.get(timeout=0.2)  # <- planted
            except queue.Empty:
                return
            zlib.compress(bytes(range(256)) * 200)
            mean = 0.9 * mean + 0.1 * self.rows[number]
            yield self.rows[number] - mean


torch.manual_seed(0)
dataset = Stolen(torch.randn(48, 5))
model = nn.Linear(5, 5)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for batch in DataLoader(dataset, batch_size=8, num_workers=2, multiprocessing_context="fork"):  # <- enters
    loss = (model(batch) - batch).abs().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
