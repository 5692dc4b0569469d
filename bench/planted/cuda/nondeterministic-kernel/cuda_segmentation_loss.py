"""Cross entropy of images, with class weights."""
# planted: cause=nondeterministic-kernel

import torch
from torch import nn
from torch.nn import functional

torch.manual_seed(0)
images = torch.randn(8, 3, 128, 128, device="cuda")
classes = torch.randint(5, (8, 128, 128), device="cuda")
weight = torch.rand(5, device="cuda")
model = nn.Conv2d(3, 5, 3, padding=1).cuda()


def compute():
    return functional.cross_entropy(model(images), classes, weight)  # <- planted


optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(5):
    loss = compute()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
