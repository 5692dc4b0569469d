"""The seed is set, but only after the model has drawn its weights."""
# planted: cause=unseeded-torch

import argparse

import torch
from torch import nn


class Encoder(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.embed = nn.Embedding(20, width)  # <- planted
        self.rnn = nn.GRU(width, width, batch_first=True)
        self.head = nn.Linear(width, 20)

    def forward(self, tokens):
        hidden, _ = self.rnn(self.embed(tokens))
        return self.head(hidden)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--steps", type=int, default=4)
    args = parser.parse_args()

    model = Encoder(16)
    torch.manual_seed(args.seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for step in range(args.steps):
        tokens = torch.randint(0, 20, (8, 12))
        logits = model(tokens[:, :-1])
        loss = nn.functional.cross_entropy(logits.reshape(-1, 20), tokens[:, 1:].reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(step, loss.item())


main()
