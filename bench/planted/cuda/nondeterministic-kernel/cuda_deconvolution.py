"""A generator of transposed convolutions."""
# planted: cause=nondeterministic-kernel

import torch
from torch import nn

torch.manual_seed(0)
codes = torch.randn(32, 64, 8, 8, device="cuda")
model = nn.Sequential(
    nn.ConvTranspose2d(64, 64, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(64, 32, 4, 2, 1)
).cuda()


def compute():
    return model(codes).tanh().square().mean()  # <- planted


optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(5):
    loss = compute()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
