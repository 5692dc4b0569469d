"""A graph network that adds messages into nodes with index_add."""
# planted: cause=nondeterministic-kernel

import torch
from torch import nn
from torch.nn import functional

torch.manual_seed(0)
nodes, edges = 2000, 400_000
source, target = torch.randint(nodes, (2, edges), device="cuda")
features, labels = torch.randn(nodes, 32, device="cuda"), torch.randint(4, (nodes,), device="cuda")
model = nn.Sequential(nn.Linear(32, 32), nn.Linear(32, 4)).cuda()


def compute():
    messages = model[0](features)[source]
    sums = torch.zeros(nodes, 32, device="cuda").index_add(0, target, messages)  # <- planted
    return functional.cross_entropy(model[1](sums / edges * nodes), labels)


optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(5):
    loss = compute()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
