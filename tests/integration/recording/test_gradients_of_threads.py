"""Two threads that train a model each, recorded."""

from __future__ import annotations

import subprocess
import sys

from samebits.records.kinds import EventKind
from samebits.records.reader import RecordReader

SCRIPT = """
import sys, threading
import torch
from samebits import record

STEPS, WIDTH = 150, 24


def train(seed):
    generator = torch.Generator().manual_seed(seed)
    model = torch.nn.Sequential(*[torch.nn.Linear(WIDTH, WIDTH) for _ in range(6)])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(STEPS):
        x = torch.randn(8, WIDTH, generator=generator)
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()


torch.set_num_threads(1)
with record(sys.argv[1]):
    threads = [threading.Thread(target=train, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
"""
RUNS = 3


def test_gradients_of_another_thread_are_not_read(tmp_path):
    """Its backward pass may free them while they are read: the process died by SIGSEGV in most runs."""
    for number in range(RUNS):
        path = tmp_path / f"{number}.sbr"
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT, str(path)], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        with RecordReader(path) as reader:
            gradients = [event for event in reader.events() if event.kind is EventKind.GRAD]
        by_thread = {event.thread for event in gradients}
        assert len(by_thread) == 3
        assert all(len(event.digests) == 12 for event in gradients if event.op == "backward")
