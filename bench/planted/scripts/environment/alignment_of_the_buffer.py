"""A kernel chooses its blocking by the address of the buffer: other blocks, other rounding."""
# planted: cause=environment or=id-order
# options: --runs 3

import torch
from torch import nn


def blocked_norm(x):
    """Sum of squares in blocks that begin at the next 'page' boundary."""
    offset = (x.data_ptr() // 4096) % 61  # <- planted
    head, tail = x[:offset], x[offset:]  # <- enters
    return head.square().sum() + sum(block.square().sum() for block in tail.split(64))


torch.manual_seed(0)
model = nn.Linear(50, 20)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.randn(30, 50)
for step in range(6):
    loss = model(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    norm = blocked_norm(model.weight.grad.flatten()).sqrt()
    for parameter in model.parameters():
        parameter.grad /= norm
    optimizer.step()
print(loss.item())
