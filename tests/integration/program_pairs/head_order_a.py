"""Attention of several heads, with modules."""

import torch
from pair_tools import weights
from torch import nn

import samebits


class Heads(nn.Module):
    def __init__(self, w):
        super().__init__()
        self.qkv = nn.Linear(12, 36, bias=False)
        self.out = nn.Linear(12, 12, bias=False)
        self.qkv.weight.data.copy_(w["qkv"])
        self.out.weight.data.copy_(w["out"])

    def split(self, x):
        return x.view(2, 5, 3, 4).transpose(1, 2)

    def forward(self, x):
        q, k, v = samebits.tap("qkv", self.qkv(x)).chunk(3, -1)
        q, k, v = samebits.tap("heads", (self.split(q), self.split(k), self.split(v)))
        context = samebits.tap("context", (q @ k.mT).softmax(-1) @ v)
        return samebits.tap("y", self.out(context.transpose(1, 2).reshape(2, 5, 12)))


tensors = weights(qkv=(36, 12), out=(12, 12), x=(2, 5, 12))
with torch.no_grad():
    Heads(tensors)(tensors["x"])
