"""A vocabulary is numbered in the order of a set of strings."""
# planted: cause=hash-order

import torch
from torch import nn

torch.manual_seed(0)
TEXT = "a quick brown fox jumps over the lazy dog while a slow red hen sleeps under the old cart".split()
index = {word: number for number, word in enumerate(set(TEXT))}  # <- planted
tokens = torch.tensor([index[word] for word in TEXT])  # <- enters

model = nn.Sequential(nn.Embedding(len(index), 12), nn.Linear(12, len(index)))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(4):
    loss = nn.functional.cross_entropy(model(tokens[:-1]), tokens[1:])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(epoch, loss.item())
