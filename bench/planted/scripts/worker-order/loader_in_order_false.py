"""A DataLoader with in_order=False: batches come as the workers finish them."""
# planted: cause=worker-order or=race

import zlib

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Pictures(Dataset):
    """Some pictures take longer to decode."""

    def __len__(self):
        return 48

    def __getitem__(self, index):
        for _ in range(40 if index % 5 == 0 else 5):
            zlib.compress(bytes(range(256)) * 200)
        angle = torch.tensor(index / 48)
        return torch.stack([angle, angle.sin(), angle.cos()]), angle.exp()


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
loader = DataLoader(Pictures(), batch_size=4, num_workers=3, in_order=False)
for x, y in loader:  # <- planted
    loss = (model(x)[:, 0] - y).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
