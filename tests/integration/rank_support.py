"""Starts scripts of several ranks by torch's own launcher, with gloo."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
import torch.distributed as dist
from cli_support import environment

if TYPE_CHECKING:
    from pathlib import Path

needs_gloo = pytest.mark.skipif(
    not (dist.is_available() and dist.is_gloo_available()), reason="this torch has no gloo"
)

# MODE is what is planted.
TRAIN = """
    import os, sys, torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel as DDP
    from torch.utils.data import DataLoader, DistributedSampler, TensorDataset
    mode = "MODE"
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    net = torch.nn.Linear(4, 3)
    model = DDP(net)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    data = TensorDataset(torch.arange(64.0).reshape(16, 4) / 50, torch.arange(16) % 3)
    sampler = DistributedSampler(data)
    step = 0
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for x, y in DataLoader(data, batch_size=4, sampler=sampler):
            optimizer.zero_grad()
            if mode == "noisy" and step == 1 and rank == 1:
                x = x + int.from_bytes(os.urandom(1), "big") + 1
            out = net(x) if mode == "bypass" and step == 2 else model(x)
            torch.nn.functional.cross_entropy(out, y).backward()
            if mode == "crash" and step == 2 and rank == 1:
                raise RuntimeError("planted")
            optimizer.step()
            step += 1
    print("rank", rank, torch.initial_seed(), torch.rand(1).item(), flush=True)
    dist.destroy_process_group()
"""


def launch(ranks: int, *words: object, cwd: Path, **extra: str) -> subprocess.CompletedProcess[str]:
    """`torchrun --nproc-per-node RANKS WORDS`."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"]
    return subprocess.run(
        [*command, *map(str, words)],
        cwd=cwd,
        env=environment(**extra),
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
