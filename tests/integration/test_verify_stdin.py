"""`samebits verify` gives every run the standard input that the first one had."""

from __future__ import annotations

import subprocess
import sys

import pytest
from cli_support import environment, write

SCRIPT = """
    import sys
    import torch
    weight = torch.zeros(3, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.1)
    for _ in range(3):
        rate = float(input())
        optimizer.zero_grad()
        (weight * rate).sum().backward()
        optimizer.step()
    print("rate", rate, "sum", weight.sum().item())
"""


def verify(folder, **stdin):
    """Verify the script with some standard input."""
    write(folder, "train.py", SCRIPT)
    return subprocess.run(
        [sys.executable, "-m", "samebits", "verify", "train.py"],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        **stdin,
    )


def test_a_pipe_reaches_every_run(tmp_path):
    result = verify(tmp_path, input="0.5\n1.5\n2.5\nunread\n")
    assert result.returncode == 0, result.stderr + result.stdout
    assert result.stdout.count("rate 2.5 sum") == 2
    assert "identical: 2 runs, 3 steps" in result.stdout


def test_a_long_pipe_reaches_every_run(tmp_path):
    result = verify(tmp_path, input="0.5\n1.5\n2.5\n" + "unread " * 100_000)
    assert result.returncode == 0, result.stderr + result.stdout


def test_a_file_is_wound_back(tmp_path):
    (tmp_path / "rates").write_text("skipped\n0.5\n1.5\n2.5\n")
    with (tmp_path / "rates").open("rb", buffering=0) as file:
        file.seek(8)
        result = verify(tmp_path, stdin=file)
    assert result.returncode == 0, result.stderr + result.stdout
    assert result.stdout.count("rate 2.5 sum") == 2


def test_a_pipe_that_stays_open_does_not_hold_up_the_runs(tmp_path):
    write(tmp_path, "train.py", SCRIPT.replace("float(input())", "1.0"))
    command = [sys.executable, "-m", "samebits", "verify", "train.py"]
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.wait(300) == 0


@pytest.mark.parametrize("given", ["", "0.5\n"])
def test_too_little_is_said_as_the_script_says_it(tmp_path, given):
    result = verify(tmp_path, input=given)
    assert result.returncode == 2
    assert "train.py failed in both runs: EOFError" in " ".join(result.stdout.split())
