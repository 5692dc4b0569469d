"""A classifier in evaluation mode."""

import torch
from pair_tools import weights
from torch import nn

import samebits

w = weights(table=(30, 12), first=(12, 12), second=(3, 12))
model = nn.ModuleDict(
    {
        "embedding": nn.Embedding.from_pretrained(w["table"]),
        "dropout": nn.Dropout(0.2),
        "hidden": nn.Linear(12, 12, bias=False),
        "output": nn.Linear(12, 3, bias=False),
    }
).eval()
with torch.no_grad():
    model["hidden"].weight.copy_(w["first"])
    model["output"].weight.copy_(w["second"])
    ids = samebits.tap("ids", torch.tensor([[3, 7, 29], [0, 1, 2]]))
    x = samebits.tap("embedded", model["embedding"](ids))
    x = samebits.tap("dropped", model["dropout"](x))
    x = samebits.tap("hidden", torch.tanh(model["hidden"](x)))
    samebits.tap("scores", model["output"](x))
