"""The list of samples is shuffled with `random.shuffle` before it is cut into batches."""
# planted: cause=unseeded-python in=samples.py

import torch
from samples import batches
from torch import nn

torch.manual_seed(2)
table = torch.randn(20, 6)
labels = (table.sum(1) > 0).long()
model = nn.Sequential(nn.Linear(6, 10), nn.BatchNorm1d(10), nn.ReLU(), nn.Linear(10, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    for rows in batches(20, 5):
        x, y = table[rows], labels[rows]  # <- enters
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
