"""Work arrays are made with torch.empty and np.empty, and filled before they are read."""
# clean: all of the memory is written first
# options: --stress

import numpy as np
import torch
from torch import nn

torch.manual_seed(0)
table = np.empty((30, 4), dtype=np.float32)
for row in range(30):
    table[row] = np.sin(np.arange(4) + row)
x = torch.from_numpy(table)
windows = torch.empty(27, 16)
for start in range(27):
    torch.cat(list(x[start : start + 4]), out=windows[start])

model = nn.Sequential(nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 4))
nn.init.orthogonal_(model[0].weight)
optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
for _ in range(3):
    loss = nn.functional.mse_loss(model(windows[:-1]), windows[1:, -4:])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
