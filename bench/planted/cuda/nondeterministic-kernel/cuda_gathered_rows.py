"""Row 0 to 99 are gathered again and again."""
# planted: cause=nondeterministic-kernel

import torch
from torch import nn

torch.manual_seed(0)
index = torch.randint(100, (200_000, 8), device="cuda")
model = nn.Linear(8, 100).cuda()


def compute():
    rows = torch.gather(model.weight, 0, index % 100)  # <- planted
    return rows.tanh().square().mean()


optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(5):
    loss = compute()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
