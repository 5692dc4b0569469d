"""Two reader threads put samples into one queue; the trainer takes them as they arrive."""
# planted: cause=race in=readers.py

import torch
from readers import start_readers
from torch import nn

torch.manual_seed(0)
left, right = torch.randn(40, 6), torch.randn(40, 6) + 1
samples = start_readers([left, right])

model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.5)
for step in range(10):
    batch = torch.stack([samples.get() for _ in range(8)])  # <- enters
    loss = (model(batch) - batch[:, :1]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
