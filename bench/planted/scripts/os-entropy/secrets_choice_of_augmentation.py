"""A policy of augmentations is picked with `secrets.choice`."""
# planted: cause=os-entropy

import secrets

import torch
from torch import nn

POLICIES = [
    lambda x: x.flip(-1),
    lambda x: x.transpose(-1, -2),
    lambda x: x * 0.5,
    lambda x: x + 0.1,
    lambda x: x.roll(2, -1),
    lambda x: -x,
]


def augment(x):
    for _ in range(3):
        x = secrets.choice(POLICIES)(x)  # <- planted
    return x


torch.manual_seed(0)
images, labels = torch.randn(16, 1, 6, 6), torch.arange(16) % 4
model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(64, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(5):
    views = torch.stack([augment(image) for image in images])
    loss = nn.functional.cross_entropy(model(views), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
