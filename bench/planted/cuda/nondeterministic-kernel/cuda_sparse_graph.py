"""A sparse adjacency matrix times features."""
# planted: cause=nondeterministic-kernel

import torch
from torch import nn

torch.manual_seed(0)
nodes, edges = 5000, 200_000
index = torch.randint(nodes, (2, edges), device="cuda")
adjacency = torch.sparse_coo_tensor(index, torch.rand(edges, device="cuda"), (nodes, nodes)).coalesce()
features = torch.randn(nodes, 64, device="cuda")
model = nn.Linear(64, 64).cuda()


def compute():
    return torch.sparse.mm(adjacency, model(features)).tanh().square().mean()  # <- planted


optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(5):
    loss = compute()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
