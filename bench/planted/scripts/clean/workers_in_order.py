"""Three workers of unequal speed; the loader puts their batches back in order."""
# clean: the default in_order=True restores the order

import zlib

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Slow(Dataset):
    def __len__(self):
        return 30

    def __getitem__(self, index):
        zlib.compress(bytes(range(256)) * 60 * (index % 4))
        return torch.tensor([index / 30, 1 - index / 30])


torch.manual_seed(0)
model = nn.Linear(2, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for batch in DataLoader(Slow(), batch_size=5, num_workers=3, shuffle=True):
    loss = (model(batch) - batch.flip(1)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
