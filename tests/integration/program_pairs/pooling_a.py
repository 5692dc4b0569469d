"""A sentence encoder: the mean over the tokens that are no padding."""

import torch
from pair_tools import weights

import samebits

w = weights(table=(9, 6), out=(6, 4))
ids = samebits.tap("ids", torch.tensor([[3, 5, 0, 0], [1, 2, 7, 8]]))
mask = (ids != 0).float()[..., None]
states = samebits.tap("states", w["table"][ids])
pooled = samebits.tap("pooled", (states * mask).sum(1) / mask.sum(1))
samebits.tap("embedding", torch.nn.functional.normalize(pooled @ w["out"], dim=-1))
