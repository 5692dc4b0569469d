"""Images are padded by reflection before a convolution."""
# planted: cause=nondeterministic-kernel

import torch
from torch import nn

torch.manual_seed(0)
images = torch.randn(8, 4, 20, 20, device="cuda")
model = nn.Sequential(nn.Conv2d(4, 8, 1), nn.ReflectionPad2d(9), nn.Conv2d(8, 4, 3)).cuda()


def compute():
    return model(images).tanh().square().mean()  # <- planted


optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(5):
    loss = compute()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
