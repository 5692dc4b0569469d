"""As many steps as fit before a deadline, in a script that also has a set of strings."""
# planted: cause=wall-clock
# options: --runs 3

import time

import torch
from torch import nn

torch.manual_seed(0)
classes = {"cat", "dog"}
images = torch.randn(16, 3, 24, 24)
labels = torch.arange(16) % len(classes)
model = nn.Sequential(nn.Conv2d(3, 32, 3), nn.ReLU(), nn.Flatten(), nn.Linear(32 * 22 * 22, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
deadline = time.monotonic() + 0.7
while time.monotonic() < deadline:  # <- planted
    loss = nn.functional.cross_entropy(model(images), labels)  # <- enters
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
