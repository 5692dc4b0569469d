"""A checkpoint is resumed, but the generator's state was not part of it."""
# planted: cause=unseeded-torch

import os
import tempfile

import torch
from torch import nn


def train(model, optimizer, steps):
    for _ in range(steps):
        x = torch.randn(8, 6)  # <- planted
        loss = model(x).logsumexp(1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def build():
    model = nn.Linear(6, 3)
    nn.init.constant_(model.weight, 0.1)
    nn.init.zeros_(model.bias)
    return model, torch.optim.RMSprop(model.parameters(), lr=1e-2)


with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "last.pt")
    model, optimizer = build()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, path)

    # The "resumed" part: only weights and optimizer come back.
    model, optimizer = build()
    saved = torch.load(path)
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    print(train(model, optimizer, steps=5))
