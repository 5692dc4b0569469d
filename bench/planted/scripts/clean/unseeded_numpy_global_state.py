"""numpy's global generator is never seeded; all draws come from a seeded Generator object."""
# clean: the unseeded generator is not the one that is used

import numpy as np
import torch
from torch import nn

torch.manual_seed(0)
rng = np.random.default_rng(2024)
x = torch.from_numpy(rng.normal(size=(24, 5)).astype(np.float32))
order = rng.permutation(24)
model = nn.Linear(5, 5)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for rows in np.array_split(order, 4):
    batch = x[rows]
    noise = torch.from_numpy(rng.uniform(-0.1, 0.1, batch.shape).astype(np.float32))
    loss = nn.functional.mse_loss(model(batch + noise), batch)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
