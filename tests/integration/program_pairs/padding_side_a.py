"""A recurrent reader: texts are padded on the left."""

import torch
from pair_tools import weights

import samebits

w = weights(table=(8, 5), inner=(5, 5), out=(5, 3))
texts = [[3, 1], [4, 1, 5, 2]]
samebits.tap("lengths", torch.tensor([len(text) for text in texts]))
length = max(map(len, texts))
ids = samebits.tap("ids", torch.tensor([[0] * (length - len(text)) + text for text in texts]))
state = torch.zeros(2, 5)
for position in range(length):
    state = samebits.tap("state", torch.tanh(w["table"][ids[:, position]] + state @ w["inner"]))
samebits.tap("answer", state @ w["out"])
