"""A small residual network in float32."""
# planted: cause=nondeterministic-kernel

import torch
from torch import nn
from torch.nn import functional

torch.manual_seed(0)
images, labels = torch.randn(64, 3, 64, 64, device="cuda"), torch.randint(10, (64,), device="cuda")
parts = [
    nn.Conv2d(3, 64, 3, padding=1),
    nn.BatchNorm2d(64),
    nn.ReLU(),
    nn.Conv2d(64, 128, 3, stride=2, padding=1),
]
model = nn.Sequential(
    *parts, nn.BatchNorm2d(128), nn.ReLU(), nn.AvgPool2d(32), nn.Flatten(), nn.Linear(128, 10)
).cuda()


def compute():
    return functional.cross_entropy(model(images), labels)  # <- planted


optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(5):
    loss = compute()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
