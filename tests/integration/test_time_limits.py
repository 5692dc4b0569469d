"""A script that limits its time by a signal is interrupted where bare Python would interrupt it."""

from __future__ import annotations

import pytest
from cli_support import samebits, write

# Each piece of work is given a moment, and goes on far longer if the signal is lost.
LIMITED = """
import random, signal, time
import torch

class OverTime(Exception):
    pass

def end(signum, frame):
    raise OverTime

def draws():
    random.seed(0); time.time()

def ops():
    torch.tanh(torch.ones(4) + 1)

def reads():
    float(torch.ones(1))

def backward():  # no optimizer: torch leaves gradients off where a signal ends one of its own contexts
    model(torch.ones(4, 2)).sum().backward()

signal.signal(signal.SIGALRM, end)
torch.manual_seed(0)
model = torch.nn.Linear(2, 1)
work = globals()[WORK]
ended = 0
for _ in range(40):
    begun = time.monotonic()
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        while time.monotonic() < begun + 1:
            work()
    except OverTime:
        ended += 1
print("ended", ended)
"""


@pytest.mark.parametrize("level", ["step", "op"])
@pytest.mark.parametrize("work", ["draws", "ops", "reads", "backward"])
def test_no_signal_is_lost(tmp_path, level, work):
    write(tmp_path, "train.py", LIMITED.replace("WORK", repr(work)))
    done = samebits("run", "--level", level, "--record", "a.sbr", "train.py", cwd=tmp_path)
    assert done.stdout == "ended 40\n", done.stderr
    assert "could not be written" not in done.stderr
