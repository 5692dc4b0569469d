"""A multilayer perceptron of modules."""

import torch
from pair_tools import weights
from torch import nn

import samebits


class Perceptron(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(8, 16)
        self.fc2 = nn.Linear(16, 16)
        self.head = nn.Linear(16, 4)

    def forward(self, x):
        x = samebits.tap("hidden", torch.relu(self.fc1(x)))
        x = samebits.tap("second", torch.relu(self.fc2(x)))
        return samebits.tap("logits", self.head(x))


stored = weights(w1=(16, 8), b1=(16,), w2=(16, 16), b2=(16,), w3=(4, 16), b3=(4,), x=(5, 8))
model = Perceptron()
model.load_state_dict(
    {
        "fc1.weight": stored["w1"],
        "fc1.bias": stored["b1"],
        "fc2.weight": stored["w2"],
        "fc2.bias": stored["b2"],
        "head.weight": stored["w3"],
        "head.bias": stored["b3"],
    }
)
samebits.tap("input", stored["x"])
samebits.tap("weights", {"first": model.fc1.weight, "second": model.fc2.weight, "head": model.head.weight})
with torch.no_grad():
    model(stored["x"])
