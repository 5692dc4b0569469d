"""The same with a mask of booleans."""

import torch
from pair_tools import own_names, weights

tap = own_names(raw="s", masked="s_masked", attention="p", out="y")
tensors = weights(q=(9, 9), k=(9, 9), x=(6, 9))


class Mask(torch.nn.Module):
    def __init__(self, length):
        super().__init__()
        visible = torch.ones(length, length, dtype=torch.bool).tril(1)  # planted: one token of the future
        self.register_buffer("visible", visible)

    def forward(self, scores):
        return scores.masked_fill(~self.visible, float("-inf"))


x = tensors["x"]
s = tap("raw", (x @ tensors["q"]) @ (x @ tensors["k"]).T)
p = tap("attention", tap("masked", Mask(6)(s)).softmax(-1))
tap("out", p @ x)
