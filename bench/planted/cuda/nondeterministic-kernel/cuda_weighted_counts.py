"""Class frequencies from weighted bincount."""
# planted: cause=nondeterministic-kernel

import torch
from torch import nn

torch.manual_seed(0)
classes = torch.randint(10, (500_000,), device="cuda")
weights = torch.rand(500_000, device="cuda")
model = nn.Linear(10, 10).cuda()


def compute():
    counts = torch.bincount(classes, weights, minlength=10)  # <- planted
    return model((counts / counts.sum()).float()).square().mean()


optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(5):
    loss = compute()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
