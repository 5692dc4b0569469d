"""Attention over a whole text at once."""

import torch
from pair_tools import weights

import samebits

w = weights(x=(6, 8), q=(8, 8), k=(8, 8), v=(8, 8))
query, key, value = (w["x"] @ w[name] for name in "qkv")
visible = torch.ones(6, 6, dtype=torch.bool).tril()
context = (query @ key.T).masked_fill(~visible, float("-inf")).softmax(-1) @ value
for position in range(6):
    samebits.tap("context", context[position])
