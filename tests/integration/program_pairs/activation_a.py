"""A feed-forward network with the exact GELU."""

import torch
from pair_tools import weights
from torch import nn

import samebits

w = weights(up=(32, 8), down=(8, 32), x=(3, 8))


class FeedForward(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Parameter(w["up"])
        self.down = nn.Parameter(w["down"])
        self.act = nn.GELU()

    def forward(self, x):
        x = samebits.tap("up", nn.functional.linear(x, self.up))
        return samebits.tap("down", nn.functional.linear(samebits.tap("act", self.act(x)), self.down))


with torch.no_grad():
    FeedForward()(samebits.tap("x", w["x"]))
