"""Token ids as int64, one text at a time."""

import torch
from pair_tools import weights

import samebits

w = weights(table=(9, 6), out=(6, 2))
for text in ([1, 2, 8], [4, 0, 3]):
    ids = samebits.tap("ids", torch.tensor(text))
    x = samebits.tap("mean", w["table"][ids].mean(0))
    samebits.tap("scores", x @ w["out"])
