"""A launcher script in bash picks the fold of the cross-validation with $RANDOM."""
# planted: cause=unknown
# options: --runs 3

import subprocess

import torch
from torch import nn

LAUNCHER = "for fold in 0 1 2 3; do echo $RANDOM; done"

torch.manual_seed(0)
answer = subprocess.run(["bash", "-c", LAUNCHER], capture_output=True, text=True, check=True)  # <- planted
folds = [int(word) % 5 for word in answer.stdout.split()]
x, y = torch.randn(50, 4), torch.randn(50, 1)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for held_out in folds:
    kept = torch.arange(50) % 5 != held_out  # <- enters
    loss = (model(x[kept]) - y[kept]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
