"""The seed comes from os.urandom and is printed, so that a run could be repeated, but never is."""
# planted: cause=os-entropy

import os

import torch
from torch import nn

seed = int.from_bytes(os.urandom(4), "little")  # <- planted
print("seed", seed)
torch.manual_seed(seed)  # <- enters

model = nn.Sequential(nn.Linear(3, 8), nn.SiLU(), nn.Linear(8, 1))  # <- enters
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
x = torch.linspace(-1, 1, 30).reshape(10, 3)
for step in range(4):
    loss = (model(x) - x.square().sum(1, keepdim=True)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
