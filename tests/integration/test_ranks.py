"""Distributed runs: a record for each rank, ranks compared with each other, launches rank by rank."""

from __future__ import annotations

import json
import sys

import pytest
from cli_support import complaints, judged, samebits, write
from rank_support import TRAIN, launch, needs_gloo

from samebits.environment.distributed import KEY
from samebits.records.reader import RecordReader

pytestmark = needs_gloo

SUSPICIOUS = """
    import torch
    import torch.distributed as dist
    from contextlib import nullcontext
    from torch.nn.parallel import DistributedDataParallel as DDP
    from torch.utils.data import DataLoader, DistributedSampler, IterableDataset, TensorDataset
    from torch.utils.data import WeightedRandomSampler

    class Stream(IterableDataset):
        def __iter__(self):
            yield from torch.arange(dist.get_rank(), 8.0)

    class Generator(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.used, self.unused = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)
            self.register_buffer("calls", torch.zeros(1))

        def forward(self, x):
            self.calls += 1 + dist.get_rank()
            return self.used(x)

    if __name__ == "__main__":
        dist.init_process_group("gloo")
        rank = dist.get_rank()
        torch.manual_seed(rank)
        one, other = DDP(Generator(), find_unused_parameters=True), DDP(torch.nn.Linear(4, 1))
        first = torch.optim.Adam(one.parameters(), lr=0.01)
        second = torch.optim.SGD(other.parameters(), lr=0.1)
        data = TensorDataset(torch.arange(128.0).reshape(32, 4) / 100)
        sampler = DistributedSampler(data)
        workers = {"num_workers": 1, "persistent_workers": True, "worker_init_fn": torch.manual_seed}
        loader = DataLoader(data, 4, sampler=sampler, **workers)
        for epoch in range(3):
            sampler.set_epoch(epoch)
            for i, (x,) in enumerate(loader):
                if epoch == 0 and i == 1:
                    break
                last = i % 2 == 1
                with nullcontext() if last else one.no_sync():
                    other(one(x)).mean().backward()
                if last:
                    torch.nn.utils.clip_grad_norm_(one.parameters(), 1.0)
                    first.step()
                    first.zero_grad()
                second.zero_grad()
                other(one(x).detach()).mean().backward()
                second.step()
        for _ in DataLoader(Stream(), 2):
            pass
        for _ in DataLoader(data, 2, sampler=WeightedRandomSampler(torch.ones(32), 8)):
            pass
        if rank == 0:
            for _ in DataLoader(data, 16):
                pass
        dist.destroy_process_group()
"""
DRAW = """
    import os, torch
    os.write(1, f"{os.environ['RANK']} {torch.initial_seed()}\\n".encode())  # in one piece
"""


def names(folder):
    return sorted(entry.name for entry in folder.iterdir())


def test_a_record_for_each_rank_and_equal_replicas(tmp_path):
    """One folder for each launch; the ranks are tied by the name of the launch, and are found equal."""
    script = write(tmp_path, "train.py", TRAIN, MODE="fine")
    first = launch(2, "-m", "samebits", "run", script.name, cwd=tmp_path)
    second = launch(2, "-m", "samebits", "run", "--seed", "3", "--per-rank-seeds", script.name, cwd=tmp_path)

    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    places = [tmp_path / ".samebits" / f"train-{number}.ranks" for number in (1, 2)]
    assert [names(place) for place in places] == [["launch.json", "rank-0.sbr", "rank-1.sbr"]] * 2
    ties = []
    for place in places:
        with RecordReader(place / "rank-0.sbr") as a, RecordReader(place / "rank-1.sbr") as b:
            ties.append({reader.info.environment[KEY]["launch"] for reader in (a, b)})
            assert [reader.info.environment[KEY]["rank"] for reader in (a, b)] == [0, 1]
    assert [len(tie) for tie in ties] == [1, 1]
    assert ties[0] != ties[1]
    result = samebits("compare", "--ranks", "--json", places[0], cwd=tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr
    found = judged(result)
    assert (found["verdict"], found["steps"], found["compared"]) == (
        "identical",
        4,
        ["module.weight", "module.bias"],
    )
    assert found["notes"] == []


def test_loops_that_look_suspicious(tmp_path):
    """Accumulation, two models, workers that persist, an epoch left early, loaders of one rank: no alarm."""
    script = write(tmp_path, "train.py", SUSPICIOUS)
    result = launch(2, "-m", "samebits", "run", "--record", "r", script.name, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    with RecordReader(tmp_path / "r" / "rank-1.sbr") as reader:
        assert reader.info.notes == ()
    found = judged(samebits("compare", "--ranks", "--json", "r", cwd=tmp_path))

    assert (found["verdict"], found["steps"], found["notes"]) == ("identical", 13, [])


def test_seeds_of_the_ranks(tmp_path):
    """One seed gives all ranks the same; with --per-rank-seeds rank 0 keeps it and the others differ."""
    script = write(tmp_path, "draw.py", DRAW)
    seen = []
    for words in (("--seed", "3"), ("--seed", "3", "--per-rank-seeds")):
        result = launch(2, "-m", "samebits", "run", *words, script.name, cwd=tmp_path)
        assert result.returncode == 0, result.stderr
        seen.append(dict(line.split() for line in result.stdout.splitlines()))

    assert seen[0] == {"0": "3", "1": "3"}
    assert seen[1]["0"] == "3"
    assert seen[1]["1"] != "3"


def test_replicas_that_part_are_named(tmp_path):
    """The first step and the line, and exit status 1."""
    script = write(tmp_path, "train.py", TRAIN, MODE="bypass")
    launch(2, "-m", "samebits", "run", "--record", "r", script.name, cwd=tmp_path)
    result = samebits("compare", "--ranks", "r", cwd=tmp_path)

    assert result.returncode == 1, result.stdout + result.stderr
    assert "ranks 0 and 1 diverge at step 2" in result.stdout.replace("\n  ", " ")
    assert "optimizer.step()" in result.stdout
    assert "not averaged" in result.stdout


def test_a_rank_that_crashes(tmp_path):
    """Not judged; the rank that failed by itself comes before the one that lost its partner."""
    script = write(tmp_path, "train.py", TRAIN, MODE="crash")
    launch(2, "-m", "samebits", "run", "--record", "r", script.name, cwd=tmp_path)
    result = samebits("compare", "--ranks", "--json", "r", cwd=tmp_path)

    assert result.returncode == 2, result.stdout + result.stderr
    assert judged(result)["reason"].startswith("rank 1 failed after 2 steps (RuntimeError: planted)")


def test_restarted_ranks_get_a_folder_of_their_own(tmp_path):
    """The elastic launcher starts the ranks again: what they did before is kept."""
    source = """
        import os, sys
        import torch
        w = torch.ones(2, requires_grad=True)
        w.sum().backward()
        sys.exit(int(os.environ["TORCHELASTIC_RESTART_COUNT"] == "0" and os.environ["RANK"] == "1"))
    """
    script = write(tmp_path, "train.py", source)
    result = launch(2, "--max-restarts=1", "-m", "samebits", "run", script.name, cwd=tmp_path)

    assert result.returncode == 0, result.stderr
    places = sorted((tmp_path / ".samebits").glob("*.ranks"))
    assert [place.name for place in places] == ["train-1.ranks", "train-2.ranks"]
    labels = [json.loads((place / "launch.json").read_text()) for place in places]
    assert [label["restart"] for label in labels] == [0, 1]
    assert names(places[1]) == ["launch.json", "rank-0.sbr", "rank-1.sbr"]


def test_verify_starts_the_ranks(tmp_path):
    """Two launches, the rank that differs by itself, and the operation with its cause."""
    script = write(tmp_path, "train.py", TRAIN, MODE="noisy")
    result = samebits("verify", "--nproc-per-node", "2", "--json", script.name, cwd=tmp_path)

    assert result.returncode == 1, result.stdout + result.stderr
    found = judged(result)
    assert found["reason"].startswith("rank 1: the state differs at step 1")
    assert (found["findings"][0]["cause"], found["findings"][0]["step"]) == ("os-entropy", 1)
    line = script.read_text().splitlines()[found["findings"][0]["site"]["line"] - 1]
    assert "os.urandom" in line
    folder = tmp_path / ".samebits" / "train-verify-1"
    assert names(folder) == ["ops-1.ranks", "ops-2.ranks", "run-1.ranks", "run-2.ranks"]
    again = samebits("compare", folder / "run-1.ranks", folder / "run-2.ranks", cwd=tmp_path)
    assert again.returncode == 1
    assert "rank 1" in again.stdout


def test_launches_with_nothing_to_compare_are_not_judged(tmp_path):
    """Nor are two records of one process; a rank that only waits is no doubt."""
    some = "import os, torch\nif os.environ['RANK'] == '1': torch.ones(1).item()"
    script = write(tmp_path, "some.py", some)
    other = write(tmp_path, "none.py", "import torch")
    for each in (script, other):
        launch(2, "-m", "samebits", "run", "--record", f"{each.stem}.ranks", each.name, cwd=tmp_path)

    judges = samebits("compare", "some.ranks", "some.ranks", cwd=tmp_path)
    does_not = samebits("compare", "none.ranks", "none.ranks", cwd=tmp_path)

    assert (judges.returncode, does_not.returncode) == (0, 2), judges.stdout + does_not.stdout
    assert "rank 0: none.py took no step and read no value" in does_not.stdout


def test_verify_of_a_script_that_repeats(tmp_path):
    """Identical on each rank."""
    script = write(tmp_path, "train.py", TRAIN, MODE="fine")
    result = samebits("verify", "--nproc-per-node", "2", script.name, cwd=tmp_path)

    assert result.returncode == 0, result.stdout + result.stderr
    assert "identical: 2 launches, ranks 0 and 1 each, 4 steps" in result.stdout


def test_what_is_refused(tmp_path):
    """`verify` on each rank, options of one process, folders without ranks: one clear line."""
    script = write(tmp_path, "train.py", "print(1)\n")
    (tmp_path / "empty").mkdir()
    for words, text, extra in (
        (("verify", script.name), "runs as rank 0 of 2", {"RANK": "0", "WORLD_SIZE": "2"}),
        (("verify", "--nproc-per-node", "2", "--fix", script.name), "--fix does not work", {}),
        (("compare", "--ranks", "empty"), "holds no rank-0.sbr", {}),
        (("compare", "--ranks", "nowhere"), "is no folder", {}),
        (("compare", "a.sbr"), "expected two records, or --ranks and one folder", {}),
        (("compare", "--ranks", "a", "b"), "expected two records, or --ranks and one folder", {}),
    ):
        result = samebits(*words, cwd=tmp_path, **extra)
        assert result.returncode == 2
        assert text in complaints(result.stderr)[0]
        assert "Traceback" not in result.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="counts threads in /proc")
def test_gloo_s_threads_end_with_the_group(tmp_path):
    """What docs/how-to/ddp.md says of ranks that abort after their work."""
    script = write(
        tmp_path,
        "threads.py",
        """
        import os
        from pathlib import Path
        import torch
        import torch.distributed as dist
        import torch.distributed.nn

        def threads():
            names = [task.joinpath("comm").read_text() for task in Path("/proc/self/task").iterdir()]
            return sum("gloo_runloop" in name for name in names)

        dist.init_process_group("gloo")
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2))
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()
        before = threads()
        del model, optimizer
        dist.destroy_process_group()
        print(f"{before} {threads()}\\n", end="")
        """,
    )
    done = launch(2, script, cwd=tmp_path)
    assert done.stdout.split() == ["2", "0"] * 2, done.stderr
