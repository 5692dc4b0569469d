"""Images are made smaller with antialias."""
# planted: cause=nondeterministic-kernel

import torch
from torch import nn
from torch.nn import functional

torch.manual_seed(0)
images = torch.randn(8, 3, 128, 128, device="cuda")
model = nn.Conv2d(3, 8, 3, padding=1).cuda()


def compute():
    hidden = model(images)
    small = functional.interpolate(hidden, size=50, mode="bilinear", antialias=True)  # <- planted
    return small.tanh().square().mean()


optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(5):
    loss = compute()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
