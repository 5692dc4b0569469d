"""A residual block of modules."""

import torch
from pair_tools import weights
from torch import nn

import samebits


class Block(nn.Module):
    def __init__(self, w):
        super().__init__()
        self.norm = nn.LayerNorm(12)
        self.up = nn.Linear(12, 24)
        self.down = nn.Linear(24, 12)
        with torch.no_grad():
            for layer, name in ((self.up, "up"), (self.down, "down")):
                layer.weight.copy_(w[name])
                layer.bias.zero_()
            self.norm.weight.copy_(w["scale"])

    def forward(self, x):
        y = samebits.tap("norm", self.norm(x))
        y = samebits.tap("up", self.up(y))
        return samebits.tap("block", x + self.down(torch.nn.functional.silu(y)))


tensors = weights(up=(24, 12), down=(12, 24), scale=(12,), x=(6, 12))
block = Block(tensors)
with torch.no_grad():
    block(samebits.tap("x", tensors["x"]))
