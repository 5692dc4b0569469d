"""Shards are written under random temporary names and read back sorted by name."""
# planted: cause=os-entropy

import glob
import os
import tempfile

import torch
from torch import nn

torch.manual_seed(0)
with tempfile.TemporaryDirectory() as folder:
    for shard in torch.randn(40, 5).split(8):
        handle, path = tempfile.mkstemp(suffix=".pt", dir=folder)  # <- planted
        os.close(handle)
        torch.save(shard, path)

    model = nn.Linear(5, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        for path in sorted(glob.glob(os.path.join(folder, "*.pt"))):
            batch = torch.load(path)  # <- enters
            loss = (model(batch) - batch.norm(dim=1, keepdim=True)).abs().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    print(loss.item())
