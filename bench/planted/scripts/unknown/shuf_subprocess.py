"""A preprocessing step calls the shell's `shuf` on the list of lines."""
# planted: cause=unknown or=os-entropy

import subprocess

import torch
from torch import nn

torch.manual_seed(0)
lines = "\n".join(str(number) for number in range(30))
shuffled = subprocess.run(["shuf"], input=lines, capture_output=True, text=True, check=True)  # <- planted
order = torch.tensor([int(line) for line in shuffled.stdout.split()])  # <- enters

table = torch.randn(30, 4)
model = nn.Sequential(nn.LayerNorm(4), nn.Linear(4, 4))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
for rows in order.split(10):
    loss = nn.functional.l1_loss(model(table[rows]), table[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
