"""Files are dealt to shards by inode number, which looks like a stable identifier."""
# planted: cause=environment

import os
import tempfile

import torch
from torch import nn


def write_shards(folder, count):
    for i in range(count):
        torch.save(torch.randn(5), os.path.join(folder, f"{i:02d}.pt"))


torch.manual_seed(0)
with tempfile.TemporaryDirectory() as folder:
    write_shards(folder, 16)
    paths = sorted(os.path.join(folder, name) for name in os.listdir(folder))
    paths.sort(key=lambda path: os.stat(path).st_ino * 2654435761 % 2**32)  # <- planted
    data = torch.stack([torch.load(path) for path in paths])  # <- enters

model = nn.RNN(5, 5)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(3):
    output, _ = model(data[:-1, None])
    loss = nn.functional.mse_loss(output[:, 0], data[1:])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
