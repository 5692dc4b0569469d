"""A language model whose head is its embedding."""

import torch
from pair_tools import weights
from torch import nn

import samebits


class Model(nn.Module):
    def __init__(self, w):
        super().__init__()
        self.embedding = nn.Embedding.from_pretrained(w["table"], freeze=False)
        self.body = nn.Linear(8, 8, bias=False)
        self.body.weight.data.copy_(w["body"])
        self.head = nn.Linear(8, 13, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, ids):
        x = samebits.tap("embedded", self.embedding(ids))
        return samebits.tap("logits", self.head(samebits.tap("body", self.body(x).tanh())))


samebits.tap(
    "loss", Model(weights(table=(13, 8), body=(8, 8)))(torch.tensor([2, 5, 12])).logsumexp(-1).mean()
)
