"""A free port for the rendezvous is asked of the system; its number becomes the offset of the data."""
# planted: cause=environment

import socket

import torch
from torch import nn


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]  # <- planted


torch.manual_seed(0)
port = free_port()
data = torch.randn(64, 3)
mine = data.roll(port % 61, dims=0)[:32]  # <- enters
model = nn.Sequential(nn.Linear(3, 8), nn.Hardswish(), nn.Linear(8, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, nesterov=True, momentum=0.9)
for batch in mine.split(8):
    loss = nn.functional.mse_loss(model(batch), batch.flip(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
