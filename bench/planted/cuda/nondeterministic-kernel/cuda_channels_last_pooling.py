"""Maximum pooling in channels-last layout."""
# planted: cause=nondeterministic-kernel

import torch
from torch import nn

torch.manual_seed(0)
images = torch.randn(16, 3, 96, 96, device="cuda").to(memory_format=torch.channels_last)
model = nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), nn.MaxPool2d(3, 1)).cuda()
model = model.to(memory_format=torch.channels_last)


def compute():
    return model(images).tanh().square().mean()  # <- planted


optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(5):
    loss = compute()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
