"""The trainer after a refactoring: the model is a part of a task, and the optimizer has its defaults."""

import torch
from pair_tools import weights


class Task(torch.nn.Module):
    def __init__(self, stored):
        super().__init__()
        self.model = torch.nn.Module()
        for name in ("first", "second"):
            layer = torch.nn.Linear(*stored[name].shape[::-1], bias=False)
            layer.weight = torch.nn.Parameter(stored[name])
            self.model.add_module(name, layer)

    def loss(self, batch):
        x, target = batch
        hidden = torch.relu(torch.nn.functional.linear(x, self.model.first.weight))
        return torch.nn.functional.mse_loss(self.model.second(hidden), target)


def fit(task, batch, n_steps):
    """Train."""
    optimizer = torch.optim.AdamW(task.parameters(), lr=0.01)  # planted: the default decays weights
    for _ in range(n_steps):
        loss = task.loss(batch)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()


tensors = weights(first=(6, 4), second=(2, 6), x=(9, 4), y=(9, 2))
fit(Task(tensors), (tensors["x"], tensors["y"]), 3)
