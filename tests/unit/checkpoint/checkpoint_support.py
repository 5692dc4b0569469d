"""A small training run to save and to restore."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from samebits.digest import digest


@dataclass
class Training:
    """Model, optimizer and scheduler."""

    model: nn.Module
    optimizer: torch.optim.Optimizer
    scheduler: Any

    @property
    def parts(self) -> dict[str, Any]:
        """As `save` and `load` take them."""
        return {"model": self.model, "optimizer": self.optimizer, "scheduler": self.scheduler}

    def steps(self, count: int) -> None:
        """Train for some steps on random data, with dropout."""
        for _ in range(count):
            self.optimizer.zero_grad()
            self.model(torch.randn(8, 4)).square().mean().backward()
            self.optimizer.step()
            self.scheduler.step()

    def digest(self) -> str:
        """Of everything."""
        return str(digest([self.model, self.optimizer, torch.get_rng_state()]))


def make_training(seed: int = 0, kind: type[torch.optim.Optimizer] = torch.optim.AdamW) -> Training:
    """A model with batch normalisation and dropout."""
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 2))
    optimizer = kind(model.parameters(), lr=0.01)
    return Training(model, optimizer, torch.optim.lr_scheduler.StepLR(optimizer, 3))
