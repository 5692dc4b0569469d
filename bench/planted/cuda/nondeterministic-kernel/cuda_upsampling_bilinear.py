"""A decoder that upsamples (bilinear)."""
# planted: cause=nondeterministic-kernel

import torch
from torch import nn
from torch.nn import functional

torch.manual_seed(0)
images = torch.randn(8, 3, 32, 32, device="cuda")
target = torch.randn(8, 3, 128, 128, device="cuda")
model = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.Conv2d(16, 3, 3, padding=1)).cuda()


def compute():
    hidden = model[0](images)
    large = functional.interpolate(hidden, scale_factor=4, mode="bilinear")  # <- planted
    return (model[1](large) - target).square().mean()


optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(5):
    loss = compute()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
