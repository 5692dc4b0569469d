"""A transformer block of modules, no dropout."""

import torch
from pair_tools import weights
from torch import nn

import samebits

w = weights(qkv=(24, 8), out=(8, 8), up=(16, 8), down=(8, 16), x=(2, 4, 8))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(8), nn.LayerNorm(8)])
        for name, shape in (("qkv", (8, 24)), ("out", (8, 8)), ("up", (8, 16)), ("down", (16, 8))):
            layer = nn.Linear(*shape, bias=False)
            layer.weight.data.copy_(w[name])
            self.add_module(name, layer)

    def forward(self, x):
        q, k, v = self.qkv(samebits.tap("norm1", self.norms[0](x))).chunk(3, -1)
        context = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = samebits.tap("attended", x + self.out(context))
        y = nn.functional.gelu(self.up(samebits.tap("norm2", self.norms[1](x))))
        return samebits.tap("block", x + self.down(y))


with torch.no_grad():
    Block()(samebits.tap("x", w["x"]))
