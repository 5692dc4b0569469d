"""Checkpoints of DDP and FSDP2 runs, resumed on the same and on another number of ranks."""

from __future__ import annotations

import re

import torch
from cli_support import write
from rank_support import launch, needs_gloo

from samebits.checkpoint import load_sharded
from samebits.digest import digest

pytestmark = needs_gloo

MODEL = """
    import os, torch
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    from samebits.checkpoint import load_sharded, save_sharded
    from samebits.digest import digest

    def build(kind):
        torch.manual_seed(7)
        net = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Dropout(0.2), torch.nn.Linear(8, 3))
        if kind == "ddp":
            net.insert(2, torch.nn.BatchNorm1d(8))
            model = torch.nn.parallel.DistributedDataParallel(net)
        else:
            mesh = init_device_mesh("cpu", (size,))
            for module in (net[0], net[2], net):
                fully_shard(module, mesh=mesh)
            model = net
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
        return model, optimizer, torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)

    def train(model, optimizer, scheduler, first, last):
        for step in range(first, last):
            x = torch.randn(8, 6, generator=torch.Generator().manual_seed(step))
            optimizer.zero_grad()
            model(x[rank * 8 // size : (rank + 1) * 8 // size]).square().mean().backward()
            optimizer.step()
            scheduler.step()

    def whole(value):
        return value.full_tensor() if hasattr(value, "full_tensor") else value

    def told(name, model, optimizer):
        parameters = {n.removeprefix("module."): whole(p) for n, p in model.named_parameters()}
        state = [whole(v) for s in optimizer.state.values() for v in s.values()]
        say(f"{name} {rank} {digest(parameters)} {digest(state)} {digest(model.state_dict())}")

    def leave():  # torch's Gloo may abort when the interpreter is taken down (pytorch#190489)
        dist.barrier()
        dist.destroy_process_group()
        os._exit(0)

    def say(text):  # in one piece: the ranks share the stream
        os.write(1, f"{text}\\n".encode())

    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
"""

SAVE = (
    MODEL
    + """
    for kind in ("ddp", "fsdp"):
        model, optimizer, scheduler = build(kind)
        torch.manual_seed(rank + 1)
        train(model, optimizer, scheduler, 0, 3)
        told(f"{kind}-saved", model, optimizer)
        save_sharded(kind, model=model, optimizer=optimizer, scheduler=scheduler, step=3)
        train(model, optimizer, scheduler, 3, 6)
        told(f"{kind}-end", model, optimizer)
        model, optimizer, scheduler = build(kind)
        torch.rand(rank + 5)
        loaded = load_sharded(kind, model=model, optimizer=optimizer, scheduler=scheduler)
        train(model, optimizer, scheduler, loaded.step, 6)
        told(f"{kind}-resumed", model, optimizer)
    own = torch.nn.Linear(2, 2)
    torch.nn.init.constant_(own.weight, rank)
    save_sharded("own", model=own)
    try:
        save_sharded("bad", model=own, code=print if rank == 1 else 3)
    except Exception as error:
        say(f"refused {rank} {error}")
    stage = torch.nn.Linear(2 + rank, 2)
    expected = digest(stage)
    save_sharded("stages", model=stage)
    stage = torch.nn.Linear(2 + rank, 2)
    load_sharded("stages", model=stage)
    say(f"stage {rank} {digest(stage) == expected}")
    try:
        save_sharded("parts", **{"model" if rank else "modell": own})
    except Exception as error:
        say(f"parts {rank} {error}")
    leave()
"""
)

LOAD = (
    MODEL
    + """
    for kind in ("ddp", "fsdp"):
        model, optimizer, scheduler = build(kind)
        loaded = load_sharded(kind, model=model, optimizer=optimizer, scheduler=scheduler)
        told(f"{kind}-saved", model, optimizer)
        say(f"{kind}-rate 0 {scheduler.get_last_lr()[0]} {loaded.step} x")
    try:
        load_sharded("own", model=torch.nn.Linear(2, 2))
    except Exception as error:
        say(f"refused {rank} {error}")
    leave()
"""
)


def rows(text):
    """The lines that ranks printed: (name, rank) -> the rest."""
    found = re.findall(r"((?:ddp|fsdp)-\w+) (\d) (\S+) (\S+) (\S+)", text)
    return {(name, int(rank)): tuple(rest) for name, rank, *rest in found}


def test_resumed_on_two_on_four_and_on_one(tmp_path):
    """Bit for bit; what cannot be divided anew, and what only one rank refuses, is refused on all."""
    result = launch(2, write(tmp_path, "save.py", SAVE).name, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    saved = rows(result.stdout)
    for kind in ("ddp", "fsdp"):
        for rank in (0, 1):
            assert saved[f"{kind}-resumed", rank] == saved[f"{kind}-end", rank]
        assert saved[f"{kind}-end", 0] != saved[f"{kind}-saved", 0]
    assert saved["ddp-saved", 0][2] != saved["ddp-saved", 1][2]  # the statistics of their batches
    refusals = re.findall(r"refused \d (rank 1: code .*)", result.stdout)
    assert len(refusals) == 2
    assert not (tmp_path / "bad").exists()
    assert re.findall(r"stage \d (\w+)", result.stdout) == ["True", "True"]
    assert result.stdout.count("rank 1 gives model, and rank 0 modell") == 2

    result = launch(4, write(tmp_path, "load.py", LOAD).name, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    loaded = rows(result.stdout)
    for kind in ("ddp", "fsdp"):
        for rank in range(4):
            assert loaded[f"{kind}-saved", rank][:2] == saved[f"{kind}-saved", 0][:2]
        assert loaded[f"{kind}-rate", 0][:2] == ("0.005", "3")
    assert loaded["ddp-saved", 3][2] == saved["ddp-saved", 0][2]  # new ranks have the buffers of rank 0
    assert result.stdout.count("model.weight was not the same on all of them") == 4
    assert result.stderr.count("is loaded on 4") == 2  # said once for each checkpoint

    net = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Dropout(0.2), torch.nn.Linear(8, 3))
    optimizer = torch.optim.AdamW(net.parameters())
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
    load_sharded(tmp_path / "fsdp", model=net, optimizer=optimizer, scheduler=scheduler, rng=False)
    state = [value for states in optimizer.state.values() for value in states.values()]
    assert str(digest(dict(net.named_parameters()))) == saved["fsdp-saved", 0][0]
    assert str(digest(state)) == saved["fsdp-saved", 0][1]
