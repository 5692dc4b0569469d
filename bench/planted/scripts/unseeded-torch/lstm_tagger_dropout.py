"""A tagger whose dropout behind the LSTM draws from a generator that is seeded anew in each forward pass."""
# planted: cause=unseeded-torch

import torch
from torch import nn

torch.manual_seed(0)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(30, 8)
        self.lstm = nn.LSTM(8, 16, batch_first=True, bidirectional=True)
        self.dropout = nn.Dropout(0.3)
        self.out = nn.Linear(32, 5)

    def forward(self, words):
        states, _ = self.lstm(self.embed(words))
        if self.training:
            torch.seed()  # <- planted
        return self.out(self.dropout(states))  # <- enters


words, tags = torch.randint(30, (12, 7)), torch.randint(5, (12, 7))
tagger = Tagger()
optimizer = torch.optim.Adam(tagger.parameters(), lr=1e-2)
for step in range(5):
    loss = nn.functional.cross_entropy(tagger(words).flatten(0, 1), tags.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("final", loss.item())
