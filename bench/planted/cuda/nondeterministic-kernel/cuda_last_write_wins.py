"""Several values are put into one place."""
# planted: cause=nondeterministic-kernel

import torch
from torch import nn

torch.manual_seed(0)
place = torch.randint(1000, (200_000,), device="cuda")
model = nn.Linear(1, 1).cuda()
values = torch.randn(200_000, 1, device="cuda")


def compute():
    table = torch.zeros(1000, device="cuda")
    table = table.index_put((place,), model(values).flatten())  # <- planted
    return table.square().mean()


optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(5):
    loss = compute()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
