"""Embedding gradients of a small vocabulary."""
# planted: cause=nondeterministic-kernel

import torch
from torch import nn
from torch.nn import functional

torch.manual_seed(0)
words = torch.randint(200, (256, 512), device="cuda")
labels = torch.randint(2, (256,), device="cuda")
model = nn.ModuleList([nn.Embedding(200, 64), nn.Linear(64, 2)]).cuda()


def compute():
    vectors = model[0](words)  # <- planted
    return functional.cross_entropy(model[1](vectors.mean(1)), labels)


optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(5):
    loss = compute()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
