"""Pairs of runs that are made at the same time give the same answer as those that are not."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from cli_support import NOISY, environment, write
from process_support import is_gone

if TYPE_CHECKING:
    from pathlib import Path

# There is room on the busiest machine; tells which runs are made.
DRIVER = """\
import sys
from samebits.verification import _concurrency as concurrency, series
concurrency.free_processors = lambda others: 1000
concurrency.available_bytes = lambda: 1 << 50
make = series.Series._make
def told(self, plans):
    print("runs", *[plan.name for plan in plans], file=sys.stderr, flush=True)
    return make(self, plans)
series.Series._make = told
from samebits.cli.main import main
sys.exit(main())
"""
SAVING = f"""{NOISY}
    torch.save(model.state_dict(), "model.pt")
"""


def verify(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """`samebits verify` of train.py where there is room."""
    command = [sys.executable, "-c", DRIVER, "verify", *words, "train.py"]
    return subprocess.run(
        command,
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )


def pairs(done: subprocess.CompletedProcess[str]) -> list[str]:
    """The runs that were made at the same time."""
    lines = [line.split()[1:] for line in done.stderr.splitlines() if line.startswith("runs ")]
    return [" ".join(names) for names in lines if len(names) > 1]


def without_values(text: str) -> dict[str, object]:
    """What is the same in every verification of a script: no values, no records."""
    found = json.loads(text)
    first = found["findings"][0]
    kept = ("kind", "op", "site", "cause", "step", "entry", "confirmed_by", "remedy")
    return {"verdict": found["verdict"], **{name: first.get(name) for name in kept}}


def test_the_answer_is_the_same(tmp_path):
    folder = tmp_path / "with a space"
    folder.mkdir()
    write(folder, "train.py", NOISY)
    alone, both = verify(folder, "--json", "--one-at-a-time"), verify(folder, "--json")
    assert pairs(alone) == []
    assert pairs(both)[0] == "op-1a op-1b"
    assert len(pairs(both)) >= 2
    assert without_values(both.stdout) == without_values(alone.stdout)
    assert json.loads(both.stdout)["findings"][0]["cause"] == "unseeded-torch"
    assert both.returncode == alone.returncode == 1


def test_runs_that_change_something_are_made_one_after_the_other(tmp_path):
    write(tmp_path, "train.py", SAVING)
    done = verify(tmp_path, "--quick")
    assert pairs(done) == []
    assert "runs op-1a\nruns op-1b" in done.stderr
    assert not list(tmp_path.glob(".samebits/*/*.effects"))


def test_one_signal_ends_both(tmp_path):
    """With the verdict that was known before."""
    slow = NOISY.replace("if step == 2:", "time.sleep(0.5 * step)\n        if step == 2:")
    write(tmp_path, "train.py", "    import time\n" + slow)
    command = [sys.executable, "-c", DRIVER, "verify", "train.py"]
    process = subprocess.Popen(
        command, cwd=tmp_path, env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("runs op-1a op-1b"):
            break
    until = time.monotonic() + 60
    while len(below := _children(process.pid)) < 2:
        assert time.monotonic() < until
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    assert "different" in out
    assert process.returncode == 128 + signal.SIGTERM, err
    assert all(map(is_gone, below))


def _children(pid: int) -> list[int]:
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return [int(word) for word in file.read().split()]
