"""An autoencoder that unpools."""
# planted: cause=nondeterministic-kernel

import torch
from torch import nn
from torch.nn import functional

torch.manual_seed(0)
images = torch.randn(16, 3, 64, 64, device="cuda")
model = nn.Conv2d(3, 8, 3, padding=1).cuda()


def compute():
    small, index = functional.max_pool2d(model(images), 3, stride=1, return_indices=True)
    large = functional.max_unpool2d(small, index, 3, stride=1)  # <- planted
    return large.tanh().square().mean()


optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(5):
    loss = compute()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
