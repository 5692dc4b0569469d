"""Trainings that are killed go on with the same bits; drift control takes checkpoints as they are."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cli_support import environment, samebits, write

ROOT = Path(__file__).parents[2]
SMALL = {
    "resumable_digits.py": ("--epochs", "2", "--save-every", "5"),
    "resumable_char_gpt.py": ("--steps", "25", "--save-every", "5", "--layers", "1", "--width", "32"),
}


def start(script, folder, *words):
    """Start an example."""
    command = [sys.executable, ROOT / "examples" / script, folder, *SMALL[script], *words]
    return subprocess.Popen(
        command,
        env=environment(PYTHONUNBUFFERED="1"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process):
    """What it printed."""
    output, errors = process.communicate(timeout=180)
    assert process.returncode == 0, errors
    return output.splitlines()


def kill_at(process, folder, count):
    """Kill it as soon as it has written that many checkpoints."""
    seen: set[str] = set()
    while len(seen) < count:
        assert process.poll() is None
        seen |= (
            {name for name in os.listdir(folder) if name.endswith(".safetensors")}
            if folder.exists()
            else set()
        )
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.communicate()


@pytest.mark.parametrize(
    ("script", "words"),
    [("resumable_digits.py", ("--workers", "1", "--asynchronous")), ("resumable_char_gpt.py", ())],
    ids=["digits", "gpt"],
)
def test_a_killed_training_goes_on_with_the_same_bits(tmp_path, script, words):
    whole = finish(start(script, tmp_path / "whole"))
    folder = tmp_path / "killed"
    kill_at(start(script, folder), folder, 1)
    kill_at(start(script, folder, *words), folder, 3)
    lines = finish(start(script, folder))

    assert re.fullmatch(r"resumed at step \d+", lines[0])
    assert lines[-1] == whole[-1]
    assert lines[-1].startswith("digest ")
    assert set(lines[1:]) <= set(whole)


SCRIPT = """
    import torch
    from samebits.checkpoint import CheckpointFolder

    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 2))
    optimizer = torch.optim.Adam(model.parameters())
    parts = {"model": model, "optimizer": optimizer}
    folder = CheckpointFolder("FOLDER", save_every=2, asynchronous=True)

    def train(first, last):
        for step in range(first, last):
            optimizer.zero_grad()
            model(torch.randn(6, 4)).square().mean().backward()
            optimizer.step()
            folder.save_if_due(step=step + 1, **parts)

    if folder.load(**parts) is None:
        train(0, 5)
    train(folder.load(**parts).step, 7)
    folder.wait()
"""


def test_checkpoints_are_no_drift(tmp_path):
    script = write(tmp_path, "train.py", SCRIPT, FOLDER=tmp_path / "checkpoints")
    result = samebits("run", "--seed", "3", "--on-drift", "error", script, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "Warning" not in result.stderr


def test_errors_are_one_line(tmp_path):
    """In a script an error ends with the line that says what to do."""
    script = write(tmp_path, "load.py", "from samebits import checkpoint\ncheckpoint.load('none')\n")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "samebits.errors.SamebitsError: there is no checkpoint none"


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="no folder that nobody can write to")
def test_a_folder_that_refuses(tmp_path):
    script = write(
        tmp_path,
        "save.py",
        """
        from samebits import SamebitsError, checkpoint
        for call in (checkpoint.save, checkpoint.CheckpointFolder):
            try:
                call("/proc/self/c")
            except SamebitsError as error:
                print(error.slug)
        """,
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["checkpoint-unwritable"] * 2
