"""A report whose rows come in the order of a set: each metric is the same in every run, the file is not."""
# planted: cause=hash-order

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
metrics = {"loss": loss, "accuracy": (logits.argmax(1) == y).float().mean(), "peak": logits.abs().max()}
for name in {"loss", "accuracy", "peak"}:  # <- planted
    print(name, metrics[name].item())  # <- enters
