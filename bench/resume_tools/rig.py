"""The rig that every tool is put on: one dataset, one model, one log of what the training loop consumed.

A sample gives its index and one draw each of Python's `random`, NumPy and torch, as an augmentation would
take them. So order, and the draws of each sample, can be compared apart from each other.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.utils.data import Dataset

N_SAMPLES = 64
GLOBAL_BATCH = 8
EPOCHS = 2
SEED = 3
RANGE = 1 << 30


def options() -> argparse.Namespace:
    """What `bench/resume.py` asks of a tool."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--log", type=Path, required=True, help="file of what this rank consumed")
    parser.add_argument("--state", type=Path, required=True, help="folder for checkpoints")
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--prefetch", type=int, default=2)
    parser.add_argument("--persistent", action="store_true")
    parser.add_argument("--start", choices=["fork", "spawn"], default="fork")
    parser.add_argument("--stop", type=int, default=0, help="end after so many steps, with a checkpoint")
    parser.add_argument("--resume", action="store_true", help="go on from the checkpoint")
    chosen = parser.parse_args()
    chosen.rank = int(os.environ.get("RANK", "0"))
    chosen.world_size = int(os.environ.get("WORLD_SIZE", "1"))
    chosen.batch = GLOBAL_BATCH // chosen.world_size
    return chosen


def worker_options(chosen: argparse.Namespace) -> dict[str, Any]:
    """The arguments of a DataLoader that have to do with its workers."""
    if not chosen.workers:
        return {"num_workers": 0}
    return {
        "num_workers": chosen.workers,
        "prefetch_factor": chosen.prefetch,
        "persistent_workers": chosen.persistent,
        "multiprocessing_context": chosen.start,
    }


class Samples(Dataset[Any]):
    """Sample `i` is `i` and three draws, in int64."""

    def __len__(self) -> int:
        return N_SAMPLES

    def __getitem__(self, index: int) -> Any:
        draws = random.getrandbits(30), np.random.randint(RANGE), torch.randint(RANGE, (1,)).item()
        return torch.tensor([index, *map(int, draws)])


class Model(nn.Module):
    """Small, with dropout: its own draws must not be disturbed either."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.ReLU(), nn.Linear(8, 1))

    def forward(self, rows: Any, labels: Any = None) -> dict[str, Any]:  # noqa: ARG002 - what HF calls
        """The loss of a batch of rows, int64[batch, 4]."""
        return {"loss": self.layers(rows / RANGE).square().mean()}


def optimizer_of(model: nn.Module) -> torch.optim.Optimizer:
    """With state: momentum."""
    return torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)


class Log:
    """Writes what was consumed, one line a step, then a digest of the weights."""

    def __init__(self, chosen: argparse.Namespace) -> None:
        self._file = chosen.log.open("w", encoding="utf-8")

    def step(self, rows: Any) -> None:
        """Of one batch on this rank, int64[batch, 4]."""
        self._write({"rows": rows.tolist()})

    def end(self, model: nn.Module) -> None:
        """At the end of the training."""
        data = b"".join(value.detach().numpy().tobytes() for value in model.state_dict().values())
        self._write({"weights": hashlib.sha256(data).hexdigest()})
        self._file.close()

    def _write(self, line: dict[str, Any]) -> None:
        self._file.write(json.dumps(line) + "\n")
        self._file.flush()


def seed_everything(seed: int = SEED) -> None:
    """The block that people copy."""
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def rng_states() -> dict[str, Any]:
    """Of the three generators."""
    return {"python": random.getstate(), "numpy": np.random.get_state(), "torch": torch.get_rng_state()}


def set_rng_states(states: dict[str, Any]) -> None:
    """Put them back."""
    random.setstate(states["python"])
    np.random.set_state(states["numpy"])
    torch.set_rng_state(states["torch"])
