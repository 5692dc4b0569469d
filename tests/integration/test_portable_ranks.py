"""Ranks in portable mode: what is reduced is the sum in the order of ranks, whatever gloo and DDP do."""

from __future__ import annotations

import json

import pytest
from cli_support import write
from rank_support import launch, needs_gloo

pytestmark = needs_gloo

REDUCTIONS = """
    import functools, json, operator, sys
    import torch, torch.distributed as dist
    import samebits

    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    R = dist.ReduceOp
    seen = {}

    def all_ranks(x):
        out = [torch.empty_like(x) for _ in range(size)]
        dist.all_gather(out, x)
        return out

    def equal(name, got, wanted):
        seen[name] = got.dtype == wanted.dtype and torch.equal(got, wanted)

    with samebits.portable():
        for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.int64):
            torch.manual_seed(rank)
            x = (torch.randn(3, 334) * 100).to(dtype)
            low = dtype == torch.bfloat16
            parts = [part.float() if low else part for part in all_ranks(x)]
            exact = functools.reduce(operator.add, parts)
            total = exact.to(dtype)
            y = x.clone()
            dist.all_reduce(y)
            equal(f"all_reduce {dtype}", y, total)
            y = x.clone()
            handle = dist.all_reduce(y, async_op=True)
            handle.wait()
            equal(f"async {dtype}", y, total)
            y = x.clone()
            dist.reduce(y, 1)
            equal(f"reduce {dtype}", y, total if rank == 1 else x)
            out = torch.empty(334, dtype=dtype)
            dist.reduce_scatter_tensor(out, x)
            equal(f"reduce_scatter_tensor {dtype}", out, total[rank])
            dist.reduce_scatter(out, list(x))
            equal(f"reduce_scatter {dtype}", out, total[rank])
            y = x.clone()
            dist.all_reduce(y, R.MAX)
            equal(f"max {dtype}", y, functools.reduce(torch.maximum, parts).to(dtype) + 0)
            y = x.clone()
            dist.all_reduce(y, R.PRODUCT)
            equal(f"product {dtype}", y, functools.reduce(operator.mul, parts).to(dtype))
            if dtype.is_floating_point:
                y = x.clone()
                dist.all_reduce(y, R.AVG)
                equal(f"average {dtype}", y, (exact / size).to(dtype))
        y = torch.tensor([5 + rank])
        dist.all_reduce(y, R.BXOR)
        equal("xor", y, torch.tensor([5 ^ 6 ^ 7]))
        y = torch.arange(12.0).view(3, 4).t()
        dist.all_reduce(y)
        equal("strides", y, torch.arange(12.0).view(3, 4).t() * 3)
        y = torch.nn.Parameter(torch.ones(2))
        with torch.no_grad():
            dist.all_reduce(y)
        equal("parameter", y.detach(), torch.full((2,), 3.0))
        objects = [None] * size
        dist.all_gather_object(objects, {"rank": rank})
        seen["objects"] = objects == [{"rank": r} for r in range(size)]
        y = torch.full((2,), float(rank))
        dist.broadcast(y, 2)
        equal("broadcast", y, torch.full((2,), 2.0))
        if rank == 0:
            dist.send(torch.ones(2), 1)
        if rank == 1:
            y = torch.zeros(2)
            dist.recv(y, 0)
            equal("recv", y, torch.ones(2))
        import torch.distributed._functional_collectives as functional
        y = functional.all_reduce(torch.full((2,), 1.0 + rank), "avg", dist.group.WORLD)
        equal("functional", y + 0, torch.full((2,), 2.0))
        places = torch.tensor([[rank, 2, 2, 4]])
        values = torch.randn(4, 3, generator=torch.Generator().manual_seed(rank))
        if rank == 1:
            places, values = places[:, :0], values[:0]
        sparse = torch.sparse_coo_tensor(places, values, (5, 3), check_invariants=False)
        parts = all_ranks(sparse.to_dense())
        dist.all_reduce(sparse)
        equal("sparse", sparse.to_dense(), functools.reduce(operator.add, parts))
        try:
            dist.all_reduce(torch.ones(2, dtype=torch.int64), R.AVG)
        except samebits.errors.SamebitsError as error:
            seen["refused"] = error.slug == "portable-op" and "ReduceOp.AVG" in str(error)
        dist.barrier()
    with open(f"seen-{rank}.json", "w") as file:
        json.dump(seen, file)
    dist.destroy_process_group()
"""

TRAINING = """
    import json, sys
    import torch, torch.distributed as dist
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
    from torch.nn.parallel import DistributedDataParallel as DDP
    import samebits

    dist.init_process_group("gloo")
    rank = dist.get_rank()

    def train(hook=None, **options):
        torch.manual_seed(0)
        net = torch.nn.Sequential(torch.nn.Linear(9, 33), torch.nn.GELU(), torch.nn.Linear(33, 2))
        model = DDP(net, **options)
        if hook:
            model.register_comm_hook(*hook)
        optimizer = torch.optim.Adam(model.parameters())
        for step in range(3):
            x = torch.randn(8, 9, generator=torch.Generator().manual_seed(10 * step + rank))
            optimizer.zero_grad()
            model(x).square().sum().backward()
            optimizer.step()
        return str(samebits.digest(net.state_dict()))

    def sharded():
        from torch.distributed.fsdp import fully_shard
        mesh = dist.device_mesh.init_device_mesh("cpu", (dist.get_world_size(),))
        torch.manual_seed(0)
        net = torch.nn.Sequential(torch.nn.Linear(9, 33), torch.nn.GELU(), torch.nn.Linear(33, 2))
        for part in (*net, net):
            fully_shard(part, mesh=mesh)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for step in range(2):
            x = torch.randn(8, 9, generator=torch.Generator().manual_seed(10 * step + rank))
            net(x).square().mean().backward()
            optimizer.step()
        return str(samebits.digest([p.full_tensor().detach() for p in net.parameters()]))

    def sparse():
        torch.manual_seed(0)
        net = torch.nn.Sequential(torch.nn.Embedding(12, 4, sparse=True), torch.nn.Linear(4, 2))
        model = DDP(net)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(2):
            model(torch.arange(5) * (1 + rank) + step).square().sum().backward()
            optimizer.step()
            optimizer.zero_grad()
        return str(samebits.digest(net.state_dict()))

    power = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=1, start_powerSGD_iter=2)
    found = {
        "plain": train(),
        "buckets": train(bucket_cap_mb=0.001),
        "unused": train(find_unused_parameters=True),
        "views": train(gradient_as_bucket_view=True),
        "hook": train((None, default_hooks.allreduce_hook)),
        "power": train((power, powerSGD_hook.powerSGD_hook)),
        "sharded": sharded(),
        "sparse": sparse(),
    }
    with open(f"found-{rank}.json", "w") as file:
        json.dump(found, file)
    dist.destroy_process_group()
"""

OTHER_BACKEND = """
    import torch, torch.distributed as dist
    from torch.testing._internal.distributed.fake_pg import FakeStore
    import samebits

    dist.init_process_group("fake", rank=0, world_size=2, store=FakeStore())
    with samebits.portable():
        try:
            dist.all_reduce(torch.ones(2))
        except samebits.errors.SamebitsError as error:
            print(error.slug, error)
"""


def facts(folder, name, ranks):
    return [json.loads((folder / f"{name}-{rank}.json").read_text()) for rank in range(ranks)]


@pytest.mark.parametrize("way", ["registration", "mode"])
def test_a_reduction_is_in_the_order_of_ranks(tmp_path, way):
    write(tmp_path, "reduce.py", REDUCTIONS)
    done = launch(3, "reduce.py", cwd=tmp_path, SAMEBITS_PORTABLE_DISPATCH=way)
    assert done.returncode == 0, done.stderr
    for seen in facts(tmp_path, "seen", 3):
        assert len(seen) > 35
        assert [name for name, held in seen.items() if not held] == []


def test_the_bits_of_a_training_depend_on_no_bucket_and_no_way_of_dispatch(tmp_path):
    write(tmp_path, "train.py", TRAINING)
    found = []
    for way in ("registration", "mode"):
        words = ("-m", "samebits", "run", "--portable", "train.py")
        done = launch(2, *words, cwd=tmp_path, SAMEBITS_PORTABLE_DISPATCH=way)
        assert done.returncode == 0, done.stderr
        found += facts(tmp_path, "found", 2)
    assert found[1:] == found[:1] * 3
    assert {found[0][name] for name in ("buckets", "unused", "views")} == {found[0]["plain"]}
    assert len({found[0][name] for name in ("plain", "power", "sharded", "sparse")}) == 4


def test_another_backend_than_gloo_is_refused(tmp_path):
    write(tmp_path, "other.py", OTHER_BACKEND)
    done = launch(1, "other.py", cwd=tmp_path)
    assert done.stdout.startswith("portable-op c10d.allreduce_.default at "), done.stderr
    assert "other.py:8 communicates by fake: portable mode knows what gloo does" in done.stdout
    assert "init_process_group('gloo')" in done.stdout
