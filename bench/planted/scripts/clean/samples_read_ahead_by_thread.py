"""A thread prepares samples ahead of the trainer, at a pace of its own, and reads a number out of each."""
# clean: one thread fills the queue, in one order; only in which step it has come how far varies

import queue
import threading
import time

import torch
from torch import nn

torch.manual_seed(0)
rows = torch.randn(120, 6)
ready = queue.Queue(maxsize=40)


def read_ahead():
    for row in rows:
        time.sleep(0.001 * ((time.perf_counter_ns() >> 4) % 8))
        ready.put(row / row.norm().item())


threading.Thread(target=read_ahead, daemon=True).start()
model = nn.Linear(6, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for step in range(20):
    batch = torch.stack([ready.get() for _ in range(6)])
    loss = model(batch).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
