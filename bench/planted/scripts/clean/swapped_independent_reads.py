"""Metrics are read in the order of a set, and reported in that of their names."""
# clean: each metric is read at a line of its own, once; which is read first does not show

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(6, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, y = torch.randn(30, 6), torch.randint(0, 3, (30,))
for _ in range(3):
    logits = model(x)
    loss = nn.functional.cross_entropy(logits, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
metrics = {
    "loss": lambda: loss.item(),
    "accuracy": lambda: (logits.argmax(1) == y).float().mean().item(),
    "peak": lambda: logits.abs().max().item(),
}
report = {name: metrics[name]() for name in {"loss", "accuracy", "peak"}}
for name in sorted(report):
    print(name, report[name])
