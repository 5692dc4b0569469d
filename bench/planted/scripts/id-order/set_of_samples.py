"""Samples are made unique with a set; they hash by address, and training follows the set's order."""
# planted: cause=id-order

import torch
from torch import nn


class Sample:
    def __init__(self, x, label):
        self.x, self.label = x, label


torch.manual_seed(0)
table = torch.randn(600, 5)
samples = [Sample(row, i % 3) for i, row in enumerate(table)]
unique = list({sample for sample in samples})  # <- planted

model = nn.Sequential(nn.Linear(5, 12), nn.ReLU(), nn.Linear(12, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for start in range(0, 600, 150):
    batch = unique[start : start + 150]
    x = torch.stack([sample.x for sample in batch])  # <- enters
    y = torch.tensor([sample.label for sample in batch])
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
