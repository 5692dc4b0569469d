"""Causal attention with a mask that is added."""

import torch
from pair_tools import weights

import samebits

w = weights(q=(9, 9), k=(9, 9), x=(6, 9))


def causal(length):
    """Minus infinity above the diagonal."""
    return torch.full((length, length), float("-inf")).triu(1)


raw = samebits.tap("raw", (w["x"] @ w["q"]) @ (w["x"] @ w["k"]).T)
masked = samebits.tap("masked", raw + causal(6))
attention = samebits.tap("attention", masked.softmax(-1))
samebits.tap("out", attention @ w["x"])
