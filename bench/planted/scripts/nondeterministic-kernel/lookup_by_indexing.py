"""Embeddings looked up as `table[tokens]`: the backward adds into rows from several threads."""
# planted: cause=nondeterministic-kernel

import torch
from torch import nn

torch.manual_seed(0)
table = nn.Parameter(torch.randn(11, 8))
head = nn.Linear(8, 11)
optimizer = torch.optim.SGD([table, *head.parameters()], lr=0.1)
tokens = torch.randint(0, 11, (100, 600))
for step in range(3):
    hidden = table[tokens]  # <- planted
    loss = nn.functional.cross_entropy(head(hidden[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
