"""A classifier with the mean over tokens that are no padding."""

import torch
from pair_tools import weights

import samebits

w = weights(head=(7, 5), x=(4, 5))
targets = samebits.tap("targets", torch.tensor([1, 6, -100, 2]))
logits = samebits.tap("logits", w["x"] @ w["head"].T)
samebits.tap("objective", torch.nn.functional.cross_entropy(logits, targets))
