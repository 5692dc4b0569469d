"""A scale is copied to the CPU without waiting, and read at once."""
# planted: cause=stream-order

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(512, 512).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def scale_of(outputs):
    for _ in range(50):
        outputs = (outputs @ outputs.T @ outputs).tanh()
    copied = outputs.abs().amax(dim=1).to("cpu", non_blocking=True)  # <- planted
    return 1 + float(copied.sum())


for step in range(5):
    outputs = model(torch.randn(512, 512, device="cuda"))
    loss = outputs.square().mean() / scale_of(outputs.detach())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
