"""Sequence length grows until the process has used a certain amount of memory per page fault."""
# planted: cause=environment

import resource

import torch
from torch import nn


def page_faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt  # <- planted


torch.manual_seed(0)
lengths = 4 + page_faults() % 29
tokens = torch.arange(40) * 7 % 13
model = nn.Sequential(nn.Embedding(13, 8), nn.Linear(8, 13))
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
for _ in range(4):
    window = tokens[:lengths]  # <- enters
    loss = nn.functional.cross_entropy(model(window[:-1]), window[1:])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
