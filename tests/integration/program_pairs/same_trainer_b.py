"""The same training with a model class and a trainer class."""

import torch
from pair_tools import weights
from torch import nn


class Model(nn.Module):
    def __init__(self, stored):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 1, bias=False))
        names = {"0.weight": "first", "0.bias": "bias", "2.weight": "second"}
        self.layers.load_state_dict({name: stored[key] for name, key in names.items()})

    def forward(self, x):
        return self.layers(x)


class Trainer:
    """Trains a model on one batch."""

    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    def step(self, x, y):
        """One step."""
        error = self.model(x) - y
        self.optimizer.zero_grad()
        torch.mean(error.square()).backward()
        self.optimizer.step()


tensors = weights(first=(5, 3), bias=(5,), second=(1, 5), x=(8, 3), y=(8, 1))
trainer = Trainer(Model(tensors))
for _ in range(4):
    trainer.step(tensors["x"], tensors["y"])
