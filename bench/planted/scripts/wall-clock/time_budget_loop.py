"""Train for a fixed time instead of a fixed number of steps."""
# planted: cause=wall-clock

import argparse
import time

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--seconds", type=float, default=0.4)
args = parser.parse_args()

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 8))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
x = torch.randn(64, 8)

deadline = time.monotonic() + args.seconds
steps = 0
while time.monotonic() < deadline:  # <- planted
    loss = (model(x) - x.sin()).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    steps += 1
print(f"{steps} steps, loss {loss.item():.6f}")
