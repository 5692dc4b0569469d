"""The loader is given a generator, "for reproducibility", that nobody seeded by hand."""
# planted: cause=unseeded-torch

import torch
from torch import nn
from torch.utils.data import DataLoader, RandomSampler, TensorDataset

torch.manual_seed(0)
data = TensorDataset(torch.randn(30, 5), torch.randn(30, 1))
model = nn.Linear(5, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)

shuffle = torch.Generator()
shuffle.seed()  # <- planted
loader = DataLoader(data, batch_size=10, sampler=RandomSampler(data, generator=shuffle))

for epoch in range(2):
    for x, y in loader:  # <- enters
        loss = (model(x) - y).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
