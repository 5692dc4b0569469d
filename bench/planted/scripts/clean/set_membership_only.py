"""Large sets of strings are used for membership tests and counts."""
# clean: nothing iterates over the sets

import torch
from torch import nn

torch.manual_seed(0)
frozen_names = {"0.weight", "0.bias"}
stop_words = {"the", "a", "of", "and"}
model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1))
for name, parameter in model.named_parameters():
    parameter.requires_grad_(name not in frozen_names)
words = "the rise and fall of a small town".split()
counts = torch.tensor([float(len(word)) for word in words if word not in stop_words])
optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1)
x = torch.randn(8, 4) * len(stop_words & set(words))
for _ in range(3):
    loss = (model(x).mean() - counts.mean()).square()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
