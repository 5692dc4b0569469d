"""Advanced indexing with accumulation, each row written once."""
# clean: an op that can race, with indices that do not collide

import torch
from torch import nn

torch.manual_seed(0)
table = nn.Parameter(torch.randn(4000, 4))
optimizer = torch.optim.SGD([table], lr=0.1)
for _ in range(3):
    rows = torch.randperm(4000)
    loss = (table[rows] * torch.linspace(0, 1, 4000)[:, None]).square().sum() / 100
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
counts = torch.zeros(4000).index_put_((rows,), table.detach()[:, 0], accumulate=True)
print(counts.norm().item())
