"""Workers draw from torch's generator, which the loader seeds from the base seed."""
# clean: random augmentation in workers, each with a seed that follows from torch's

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Noisy(Dataset):
    def __len__(self):
        return 24

    def __getitem__(self, index):
        return torch.full((4,), index / 24) + 0.1 * torch.randn(4), index % 2


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(2):
    for x, y in DataLoader(Noisy(), batch_size=8, num_workers=2):
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print(loss.item())
