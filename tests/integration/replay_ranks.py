"""Trains on several ranks under a guard, once for each planted fault, and writes what each rank was told.

Started by `torch.distributed.run`. The arguments: a folder that gets a file of each rank, and the faults.
"""

from __future__ import annotations

import contextlib
import json
import sys
from pathlib import Path

import torch
import torch.distributed as dist

# Imported after `init_process_group`, as an optimizer does it, this module keeps the default group in its
# default arguments: `destroy_process_group` then leaves gloo's threads, which can abort a process that ends
# (pytorch issue 190489).
import torch.distributed.nn
from torch.nn.parallel import DistributedDataParallel

import samebits

sys.path.insert(0, str(Path(__file__).parents[1]))

from flip_support import BitFlip, flipped

FAULTY = 1
FAULTY_IN_PAIR = 3


def train(fault: str, *, guarded: bool = True) -> tuple[str, list[samebits.Mismatch]]:
    """Four steps; the digest of what this rank ends with, and the mismatches."""
    rank = dist.get_rank()
    torch.manual_seed(0)
    nn = torch.nn
    net = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 2))
    group = pair_of(rank) if fault in IN_PAIRS else None
    options = OPTIONS.get(fault, {})
    alone = fault in ALONE
    model = net if alone else DistributedDataParallel(net, process_group=group, **options)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    torch.manual_seed(5 + rank)
    found: list[samebits.Mismatch] = []
    policy = "raise" if fault == "raise" else found.append
    across = ACROSS.get(fault)
    known = net if fault in INNER else model
    guard = samebits.ReplayGuard(known, every=1, on_mismatch=policy, across_ranks=across, process_group=group)

    def step_of(x: torch.Tensor) -> torch.Tensor:
        loss = model(x).square().mean()
        loss.backward()
        return loss

    watch = guard.watch(optimizer) if fault.startswith("watch") and guarded else None
    for number in range(4):
        planted = plant(fault, net, rank, number)
        if fault == "diverged" and number == 2 and rank == FAULTY:
            net[0].weight.data = flipped(net[0].weight, 3, 20)
        optimizer.zero_grad()
        for part in range(2):
            accumulating = (
                model.no_sync() if fault == "accumulate" and part == 0 else contextlib.nullcontext()
            )
            if part == 0 and fault != "accumulate":
                continue
            x = torch.randn(4, 6)
            with accumulating, model.join() if fault == "join" else contextlib.nullcontext():
                guard(step_of, x) if guarded and watch is None else step_of(x)
        for parameter in net.parameters() if alone else ():
            dist.all_reduce(parameter.grad)
        optimizer.step()
        if planted is not None:
            planted.remove()
    if watch is not None:
        watch.remove()
    gradients = [parameter.grad for parameter in net.parameters()]
    assert not guarded or guard.replays >= 4
    return str(samebits.digest([net.state_dict(), gradients, torch.get_rng_state()])), found


def pair_of(rank: int) -> dist.ProcessGroup:
    """The group of this rank: ranks 0 and 1 train together, and 2 and 3."""
    groups = [dist.new_group([0, 1]), dist.new_group([2, 3])]
    return groups[rank // 2]


def plant(fault: str, net: torch.nn.Module, rank: int, number: int) -> BitFlip | None:
    """Plant a fault in step 1, or in all."""
    if fault in IN_PAIRS[1:] and rank == FAULTY_IN_PAIR and (number == 1 or "persistent" in fault):
        return BitFlip(net[4], None if "persistent" in fault else {0}, (1, 24))
    if (fault, number, rank) in ONCE:
        return BitFlip(net[4], {ONCE[fault, number, rank]}, (1, 24))
    if fault in PERSISTENT and rank == FAULTY:
        return BitFlip(net[4], None, (1, 24))
    if (fault == "random" and rank == FAULTY) or fault == "all random":
        return BitFlip(net[4], None, None, seed=100 * rank + number)
    return None


def main() -> None:
    """Write one line of JSON for each fault."""
    dist.init_process_group("gloo")
    lines = []
    for fault in sys.argv[2:]:
        plain = train(fault, guarded=False)[0] if fault in CLEAN else ""
        raised = ""
        try:
            digest, found = train(fault)
        except samebits.ReplayMismatchError as error:
            digest, found, raised = "", [error.mismatch], str(error)
        except samebits.SamebitsError as error:
            digest, found, raised = "", [], error.slug
        told = [
            {
                "step": each.step,
                "kind": each.kind.value,
                "ranks": each.ranks,
                "executions": each.executions,
                "odd": each.odd,
                "text": str(each),
                "tensors": [tensor.name for tensor in each.tensors],
            }
            for each in found
        ]
        lines.append({"fault": fault, "same": digest == plain, "raised": raised, "found": told})
        dist.barrier()
    Path(sys.argv[1], f"{dist.get_rank()}.json").write_text(json.dumps(lines))
    dist.destroy_process_group()


OPTIONS = {
    "own buffers": {"broadcast_buffers": False},
    "static graph": {"static_graph": True},
    "views": {"gradient_as_bucket_view": True},
    "unused, static": {"find_unused_parameters": True, "static_graph": True},
    "unused": {"find_unused_parameters": True},
}
IN_PAIRS = ("pairs", "pairs, transient", "pairs, persistent")
# Fault, step, rank -> the execution that goes wrong.
ONCE = {
    ("transient", 1, FAULTY): 0,
    ("raise", 1, FAULTY): 0,
    ("inner, transient", 1, FAULTY): 1,
    ("watch, at first", 0, FAULTY): 0,
}
# Guarded by the model inside of the wrapper.
INNER = ("inner", "inner, transient", "watch, inner")
# Trained without a wrapper: the script averages gradients itself.
ALONE = ("alone", "alone, persistent", "alone, persistent, asked")
ACROSS = {"not asked, persistent": False, "alone, persistent, asked": True}
PERSISTENT = ("persistent", "not asked, persistent", "alone, persistent", "alone, persistent, asked")
CLEAN = (
    "none",
    "alone",
    "pairs",
    "own buffers",
    "static graph",
    "views",
    "unused, static",
    "accumulate",
    "watch",
    "inner",
    "watch, inner",
)

if __name__ == "__main__":
    main()
