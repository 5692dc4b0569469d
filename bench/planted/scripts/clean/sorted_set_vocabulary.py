"""The vocabulary comes from a set, sorted before it is numbered."""
# clean: the order of the set does not survive sorting

import torch
from torch import nn

torch.manual_seed(0)
TEXT = "to be or not to be that is the question whether it is nobler in the mind".split()
index = {word: number for number, word in enumerate(sorted(set(TEXT)))}
tokens = torch.tensor([index[word] for word in TEXT])
model = nn.Sequential(nn.Embedding(len(index), 6), nn.Linear(6, len(index)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
for _ in range(4):
    loss = nn.functional.cross_entropy(model(tokens[:-1]), tokens[1:])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
