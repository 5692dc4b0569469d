"""Attention with rotary positions, as a module that keeps the angles in buffers."""

import torch
from pair_tools import weights
from torch import nn

import samebits


class Rotary(nn.Module):
    def __init__(self, size):
        super().__init__()
        frequencies = 1.0 / 10000 ** (torch.arange(0, size, 2).float() / size)
        self.register_buffer("frequencies", frequencies)

    def forward(self, x):
        angles = torch.outer(torch.arange(x.shape[-2]).float(), self.frequencies)
        cos, sin = angles.cos(), angles.sin()
        even, odd = x[..., 0::2], x[..., 1::2]
        return torch.stack((even * cos - odd * sin, even * sin + odd * cos), -1).flatten(-2)


class Attention(nn.Module):
    def __init__(self, w):
        super().__init__()
        self.w, self.rotary = w, Rotary(8)

    def forward(self, x):
        query = samebits.tap("query", x @ self.w["q"])
        key = samebits.tap("key", x @ self.w["k"])
        query, key = samebits.tap("rotated", (self.rotary(query), self.rotary(key)))
        return samebits.tap("scores", query @ key.transpose(-1, -2))


tensors = weights(q=(16, 8), k=(16, 8), x=(2, 5, 16))
with torch.no_grad():
    Attention(tensors)(samebits.tap("x", tensors["x"]))
