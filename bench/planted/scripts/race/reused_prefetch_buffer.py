"""A prefetcher overwrites the buffer that the trainer may still be reading."""
# planted: cause=race

import threading

import torch
from torch import nn

torch.manual_seed(0)
source = torch.randn(400, 64, 12)
buffer = torch.empty(64, 12)
ready = threading.Event()


def prefetch():
    for _ in range(100):
        for batch in source:
            buffer.copy_(batch)  # <- planted
            ready.set()


model = nn.Sequential(nn.Linear(12, 24), nn.GELU(), nn.Linear(24, 12))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
thread = threading.Thread(target=prefetch)
thread.start()
ready.wait()
for step in range(10):
    batch = buffer + 0.0  # <- planted
    loss = nn.functional.mse_loss(model(batch), batch)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
thread.join()
print(loss.item())
