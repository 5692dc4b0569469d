"""What workers of DataLoaders draw is in the record, right before the batch that it went into."""

from __future__ import annotations

import hashlib
import subprocess
import sys

import pytest
from cli_support import samebits, write

from samebits.records.reader import RecordReader

SCRIPT = """
    import os, sys, time
    import numpy as np
    import torch
    import torch.utils.data as data

    class Rows(data.Dataset):
        def __len__(self):
            return 8

        def __getitem__(self, index):
            np.random.rand()
            time.sleep(SLEEP if index == 0 else 0)  # the batch of the other worker arrives first
            return index, int.from_bytes(os.urandom(3), "little")  # drawn

    class Stream(data.IterableDataset):
        def __iter__(self):
            first = data.get_worker_info().id
            for index in range(first, 8, 2):
                yield index, int.from_bytes(os.urandom(3), "little")  # drawn

    if __name__ == "__main__":
        rows = KIND()
        loader = data.DataLoader(rows, batch_size=2, num_workers=2, OPTIONS)
        for epoch in range(2):
            for number, (indices, drawn) in enumerate(loader):
                print(*drawn.tolist(), flush=True)
                if LEFT and epoch == 0 and number == 1:
                    break
"""
ENDED = """import samebits
        context = samebits.record("a.sbr")
        context.__enter__()
        for epoch in range(1):"""
LOADERS = {
    "map": ("Rows", "prefetch_factor=2", 0),
    "persistent": ("Rows", "persistent_workers=True", 0),
    "persistent and left": ("Rows", "persistent_workers=True", 1),
    "left": ("Rows", "prefetch_factor=4", 1),
    "stream": ("Stream", "persistent_workers=True", 0),
}


def digest(number):
    """Of the value that `os.urandom(3)` gave."""
    return hashlib.blake2b(number.to_bytes(3, "little"), digest_size=16).digest()


def drawn_before_each_batch(path):
    """The digests of what workers drew, by the batch that follows."""
    found, waiting = [], []
    with RecordReader(path) as record:
        for event in record.events(("batch", "draw")):
            if event.kind == "batch":
                found.append(waiting)
                waiting = []
            elif event.op == "os.urandom":
                assert event.thread.startswith("worker ")
                assert event.site.function.endswith(("__getitem__", "__iter__"))
                waiting += event.digests
    assert not waiting
    return found


@pytest.mark.parametrize("name", LOADERS)
def test_draws_of_workers_come_before_the_batch_that_they_went_into(tmp_path, name):
    kind, options, left = LOADERS[name]
    write(tmp_path, "train.py", SCRIPT, KIND=kind, OPTIONS=options, LEFT=left, SLEEP=0)
    result = samebits("run", "--record", "a.sbr", "train.py", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    printed = [[digest(int(word)) for word in line.split()] for line in result.stdout.splitlines()]
    assert drawn_before_each_batch(tmp_path / "a.sbr") == printed
    assert len(printed) == (6 if left else 8)


def test_a_recording_that_ends_while_workers_go_on_leaves_plain_batches(tmp_path):
    script = SCRIPT.replace("for epoch in range(2):", ENDED).replace("if LEFT and epoch == 0", "if True")
    write(tmp_path, "train.py", script.replace("break", "context.__exit__(None, None, None)"),
          KIND="Rows", OPTIONS="prefetch_factor=2", SLEEP=0)  # fmt: skip
    result = subprocess.run(
        [sys.executable, "train.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    assert [len(line.split()) for line in result.stdout.splitlines()] == [2, 2, 2, 2]


def test_two_loaders_that_share_a_seed_are_told_apart(tmp_path):
    script = (
        SCRIPT.partition("        loader =")[0]
        + """
        def loader():
            seeded = torch.Generator().manual_seed(1)
            return data.DataLoader(rows, batch_size=2, num_workers=2, generator=seeded)
        for one, two in zip(loader(), loader()):
            print(*one[1].tolist(), flush=True)
            print(*two[1].tolist(), flush=True)
"""
    )
    write(tmp_path, "train.py", script, KIND="Rows", SLEEP=1)
    result = samebits("run", "--record", "a.sbr", "train.py", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    printed = [[digest(int(word)) for word in line.split()] for line in result.stdout.splitlines()]
    assert len(printed) == 8
    assert drawn_before_each_batch(tmp_path / "a.sbr") == printed


NESTED = """
    import torch
    from torch.utils.data import DataLoader, Dataset, TensorDataset

    def inner():
        return sum(batch[0].sum() for batch in DataLoader(TensorDataset(torch.ones(4)), 2))

    class Nest(Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, index):
            return inner()

    if __name__ == "__main__":
        for batch in DataLoader(Nest(), 2, num_workers=1, worker_init_fn=lambda worker: inner()):
            print(batch.tolist())
"""


def test_a_loader_inside_a_worker_gives_its_batches(tmp_path):
    """They are not sent, so nothing unpacks them."""
    write(tmp_path, "nest.py", NESTED)
    done = samebits("run", "--seed", "1", "nest.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[:2] == ["[4.0, 4.0]", "[4.0, 4.0]"]
