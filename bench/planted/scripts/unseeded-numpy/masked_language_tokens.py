"""A masked language model: which tokens are masked is numpy's choice, made in a collate function."""
# planted: cause=unseeded-numpy

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader

MASK, VOCABULARY = 0, 30


def collate(rows):
    tokens = torch.stack(rows)
    masked = np.random.rand(*tokens.shape) < 0.15  # <- planted
    mask = torch.from_numpy(masked)  # <- enters
    return tokens.masked_fill(mask, MASK), tokens, mask


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, 16)
        self.block = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
        self.head = nn.Linear(16, VOCABULARY)

    def forward(self, tokens):
        return self.head(self.block(self.embed(tokens)))


torch.manual_seed(3)
corpus = list(torch.randint(1, VOCABULARY, (24, 20)))
loader = DataLoader(corpus, batch_size=8, collate_fn=collate)
model = Model()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for inputs, targets, mask in loader:
    loss = nn.functional.cross_entropy(model(inputs)[mask], targets[mask])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item())
