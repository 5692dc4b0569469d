"""Word vectors with negative samples drawn by `random.choices` inside the training loop."""
# planted: cause=unseeded-python

import random

import torch
from torch import nn

torch.manual_seed(11)
TEXT = "the cat sat on the mat the dog sat on the log".split()
words = sorted(set(TEXT))
index = {word: i for i, word in enumerate(words)}
frequency = [TEXT.count(word) ** 0.75 for word in words]
pairs = [(index[a], index[b]) for a, b in zip(TEXT, TEXT[1:])]

centre = nn.Embedding(len(words), 8, sparse=True)
context = nn.Embedding(len(words), 8, sparse=True)
optimizer = torch.optim.SparseAdam([*centre.parameters(), *context.parameters()], lr=1e-2)

for epoch in range(3):
    for word, neighbour in pairs:
        negatives = random.choices(range(len(words)), weights=frequency, k=3)  # <- planted
        others = torch.tensor([neighbour, *negatives])  # <- enters
        scores = context(others) @ centre(torch.tensor(word))
        signs = torch.tensor([1.0, -1.0, -1.0, -1.0])
        loss = -nn.functional.logsigmoid(signs * scores).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
