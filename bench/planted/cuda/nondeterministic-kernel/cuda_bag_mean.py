"""An EmbeddingBag with mode 'mean'."""
# planted: cause=nondeterministic-kernel

import torch
from torch import nn
from torch.nn import functional

torch.manual_seed(0)
words = torch.randint(200, (512, 256), device="cuda")
labels = torch.randint(2, (512,), device="cuda")
model = nn.ModuleList([nn.EmbeddingBag(200, 64, mode="mean"), nn.Linear(64, 2)]).cuda()


def compute():
    vectors = model[0](words)  # <- planted
    return functional.cross_entropy(model[1](vectors), labels)


optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(5):
    loss = compute()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
