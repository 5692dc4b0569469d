"""A small CNN whose author never called torch.manual_seed."""
# planted: cause=unseeded-torch

import numpy as np
import torch
from torch import nn

np.random.seed(0)  # numpy is seeded, torch was forgotten
images = torch.from_numpy(np.random.rand(64, 1, 8, 8).astype("float32"))
labels = torch.from_numpy(np.random.randint(0, 4, 64))

model = nn.Sequential(
    nn.Conv2d(1, 8, 3, padding=1),  # <- planted
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Flatten(),
    nn.Linear(8 * 4 * 4, 4),
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

for epoch in range(3):
    for start in range(0, 64, 16):
        loss = nn.functional.cross_entropy(model(images[start : start + 16]), labels[start : start + 16])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch} loss {loss.item():.4f}")
