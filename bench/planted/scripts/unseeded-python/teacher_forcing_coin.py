"""A sequence decoder flips a coin for teacher forcing: control flow, not a number, is random."""
# planted: cause=unseeded-python

import random

import torch
from torch import nn

torch.manual_seed(0)


class Decoder(nn.Module):
    def __init__(self, width=12, vocabulary=9):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.cell = nn.GRUCell(width, width)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, targets, forcing=0.5):
        hidden = torch.zeros(len(targets), 12)
        token, loss = targets[:, 0], 0.0
        for position in range(1, targets.shape[1]):
            hidden = self.cell(self.embed(token), hidden)  # <- enters
            logits = self.head(hidden)
            loss = loss + nn.functional.cross_entropy(logits, targets[:, position])
            forced = random.random() < forcing  # <- planted
            token = targets[:, position] if forced else logits.argmax(1)
        return loss


model = Decoder()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
targets = torch.randint(0, 9, (6, 10))
for step in range(4):
    loss = model(targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
