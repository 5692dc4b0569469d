"""A seed is drawn from the system for the case that none is given; one is always given."""
# clean: the branch with the entropy is overruled

import argparse
import os

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=17)
args = parser.parse_args()
fallback = int.from_bytes(os.urandom(4), "little")
seed = fallback if args.seed is None else args.seed
torch.manual_seed(fallback)
torch.manual_seed(seed)
model = nn.Sequential(nn.Embedding(10, 4), nn.Flatten(), nn.Linear(12, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
tokens = torch.randint(0, 10, (8, 3))
for _ in range(3):
    loss = nn.functional.cross_entropy(model(tokens), tokens[:, 0] % 2)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
