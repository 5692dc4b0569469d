"""cuDNN chooses algorithms by timing."""
# planted: cause=autotuning

import torch
from torch import nn
from torch.nn import functional

torch.manual_seed(0)
torch.backends.cudnn.benchmark = True  # <- planted
images, labels = torch.randn(32, 16, 56, 56, device="cuda"), torch.randint(10, (32,), device="cuda")
parts = [
    nn.Conv2d(16, 64, 5, padding=2),
    nn.ReLU(),
    nn.Conv2d(64, 64, 3, stride=2),
    nn.ReLU(),
    nn.Conv2d(64, 64, 3),
]
model = nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10)).cuda()


def compute():
    return functional.cross_entropy(model(images), labels)


optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(5):
    loss = compute()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
