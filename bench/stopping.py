"""How long samebits goes on after one signal that asks it to end, in every phase of every long command.

    python bench/stopping.py                 about three minutes
    python bench/stopping.py verify SIGTERM  commands and signals that contain one of these words

Each row starts a command afresh on a script whose training ignores SIGTERM and has a child of its own, sends
one signal after some seconds, and takes the time until the command has ended. The allowance is two seconds
(docs/reference/cli.md). The last column counts processes of the script that are still there;
there should be none.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ALLOWED_S = 2.0
SCRIPT = """
import os, signal, subprocess, sys
import torch
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen(["sleep", "300"])
with open("started", "a") as file:
    print(os.getpid(), child.pid, file=file)
model = torch.nn.Linear(64, 64)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(int(sys.argv[1])):
    optimizer.zero_grad()
    loss = model(torch.randn(8, 64)).square().mean()
    loss.backward()
    optimizer.step()
print(f"final loss {loss.item()}")
child.kill()
"""
LONG, SHORT = "1000000", "40"
# Name, words, and after how many seconds the signal comes.
COMMANDS = (
    ("verify, first run", ("verify", "train.py", LONG), (0.3, 1.5, 4.0)),
    ("verify, explaining", ("verify", "--one-at-a-time", "train.py", SHORT), (5.0, 7.0, 9.0, 11.0)),
    ("verify, two at once", ("verify", "train.py", SHORT), (6.0, 8.0, 10.0)),
    ("verify, two ranks", ("verify", "--nproc-per-node", "2", "train.py", SHORT), (2.0, 6.0, 12.0)),
    ("verify --fresh", ("verify", "--fresh", "train.py", SHORT), (1.0, 3.0, 7.0)),
    ("verify --fix", ("verify", "--fix", "train.py", SHORT), (9.0, 14.0)),
    ("resume-check", ("resume-check", "--resume-args", "", "train.py", SHORT), (1.0, 4.0, 7.0)),
    ("spread", ("spread", "--seeds", "8", "train.py", SHORT), (1.0, 4.0)),
    ("cost", ("cost", "train.py", SHORT), (1.0, 4.0)),
)
SIGNALS = ("SIGTERM", "SIGHUP", "SIGQUIT", "SIGALRM", "SIGXCPU")


def main() -> None:
    """Print a row for each command, moment and signal, and the longest time."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("words", nargs="*", help="only rows that contain one of these")
    words = parser.parse_args().words
    longest = 0.0
    print(f"{'command':<22}{'signal':<10}{'after':>7}{'ended in':>11}{'status':>8}{'left':>6}")
    for number, (name, command, moments) in enumerate(COMMANDS):
        for index, moment in enumerate(moments):
            which = SIGNALS[(number + index) % len(SIGNALS)] if index else "SIGTERM"
            if words and not any(word in f"{name} {which}" for word in words):
                continue
            seconds, status, left = stopped(command, moment, getattr(signal, which))
            longest = max(longest, seconds or 0.0)
            took = "had ended" if seconds is None else f"{seconds:.2f} s"
            print(f"{name:<22}{which:<10}{moment:>5.1f} s{took:>11}{status:>8}{left:>6}")
    verdict = "met" if longest <= ALLOWED_S else "missed"
    print(f"the longest: {longest:.2f} s of {ALLOWED_S:.0f} s allowed, {verdict}")


def stopped(command: tuple[str, ...], moment: float, number: int) -> tuple[float | None, int, int]:
    """Seconds from the signal to the end of a command, its status, and processes that are left.

    The seconds are None where it had ended before the signal came.
    """
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "train.py").write_text(SCRIPT)
        words = [sys.executable, "-m", "samebits", *command]
        none = subprocess.DEVNULL
        process = subprocess.Popen(words, cwd=folder, stdin=none, stdout=none, stderr=none)
        time.sleep(moment)
        ended_before = process.poll() is not None
        sent = time.monotonic()
        process.send_signal(number)
        process.wait()
        seconds = None if ended_before else time.monotonic() - sent
        started = Path(folder) / "started"
        pids = [int(word) for word in started.read_text().split()] if started.exists() else []
        left = [pid for pid in pids if is_alive(pid)]
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        return seconds, process.returncode, len(left)


def is_alive(pid: int) -> bool:
    """Whether a process is there, and no zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


if __name__ == "__main__":
    main()
