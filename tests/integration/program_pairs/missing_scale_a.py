"""Attention of one head."""

import torch
from pair_tools import weights

import samebits

w = weights(q=(16, 16), k=(16, 16), v=(16, 16), x=(7, 16))
x = samebits.tap("x", w["x"])
q, k, v = samebits.tap("projections", (x @ w["q"], x @ w["k"], x @ w["v"]))
scores = samebits.tap("scores", q @ k.T / 4.0)
weights_of_values = samebits.tap("probabilities", torch.softmax(scores, dim=-1))
samebits.tap("context", weights_of_values @ v)
