"""Two lists of sample names are merged with a set union, then loaded in that order."""
# planted: cause=hash-order

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Named(Dataset):
    def __init__(self, names):
        self.names = names

    def __len__(self):
        return len(self.names)

    def __getitem__(self, index):
        number = int(self.names[index].removeprefix("scan_"))
        return torch.full((3,), number / 50), torch.tensor([number % 2.0])  # <- enters


monday = [f"scan_{number:03d}" for number in range(0, 30)]
tuesday = [f"scan_{number:03d}" for number in range(20, 50)]

torch.manual_seed(0)
dataset = Named(list({*monday} | {*tuesday}))  # <- planted
model = nn.Sequential(nn.Linear(3, 5), nn.Sigmoid(), nn.Linear(5, 1))
optimizer = torch.optim.Adadelta(model.parameters())
for x, y in DataLoader(dataset, batch_size=10):  # <- enters
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item())
