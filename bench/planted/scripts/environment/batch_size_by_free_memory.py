"""The replay capacity is computed from the free memory."""
# planted: cause=environment in=capacity.py

import torch
from capacity import free_kilobytes
from torch import nn

torch.manual_seed(0)
capacity = 50 + free_kilobytes() // 16 % 400
memory = torch.randn(capacity, 6)  # <- enters

model = nn.Sequential(nn.Linear(6, 10), nn.ReLU(), nn.Linear(10, 6))
optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
for batch in memory.split(32):
    loss = nn.functional.smooth_l1_loss(model(batch), batch)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
