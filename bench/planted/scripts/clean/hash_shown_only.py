"""The hash of the configuration names the experiment, and changes with PYTHONHASHSEED."""
# clean: hash() and id() only reach a printed name

import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--width", type=int, default=8)
args = parser.parse_args()
torch.manual_seed(0)
print(f"experiment {hash(str(args)) % 2**16:04x}")

model = nn.Sequential(nn.Linear(3, args.width), nn.Tanh(), nn.Linear(args.width, 3))
print("model at", hex(id(model)), object())
optimizer = torch.optim.NAdam(model.parameters(), lr=1e-2)
x = torch.randn(12, 3)
for _ in range(3):
    loss = nn.functional.l1_loss(model(x), x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
