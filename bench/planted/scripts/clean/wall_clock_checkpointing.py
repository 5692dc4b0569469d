"""A checkpoint is written whenever so many milliseconds have passed."""
# clean: when the state is saved follows the clock, the state itself does not

import copy
import time

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(5, 5)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
x = torch.randn(9, 5)
backup, saved_at = None, time.monotonic()
for step in range(30):
    loss = (model(x) - x.roll(1, 1)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if time.monotonic() - saved_at > 0.02:
        backup, saved_at = copy.deepcopy(model.state_dict()), time.monotonic()
print("backups" if backup else "no backup", loss.item())
