"""Training and validation loaders shuffle with one shared, seeded generator."""
# clean: two loaders draw from one generator, in a fixed order

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

generator = torch.Generator().manual_seed(5)
torch.manual_seed(5)
data = TensorDataset(torch.randn(40, 3), torch.randn(40, 1))
train, test = random_split(data, [30, 10], generator=generator)
train_loader = DataLoader(train, 10, shuffle=True, generator=generator)
test_loader = DataLoader(test, 5, shuffle=True, generator=generator)
model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    for x, y in train_loader:
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        print(epoch, [nn.functional.mse_loss(model(x), y).item() for x, y in test_loader])
