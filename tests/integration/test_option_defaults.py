"""Defaults of options in real runs: what counts is recorded, and made again wherever the record goes."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from cli_support import environment

from samebits.records.reader import RecordReader

SCRIPT = """
import torch

model = torch.nn.Linear(2, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(4):
    optimizer.zero_grad()
    model(torch.rand(3, 2)).sum().backward()
    optimizer.step()
"""


@pytest.fixture
def project(tmp_path):
    """A folder with a script, and defaults for it."""
    (tmp_path / "train.py").write_text(SCRIPT)
    (tmp_path / "pyproject.toml").write_text("[tool.samebits]\nseed = 7\n[tool.samebits.run]\nsteps = 2\n")
    return tmp_path


def samebits(folder, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command."""
    return subprocess.run(
        [sys.executable, "-m", "samebits", *words], cwd=folder, env=environment(**variables), text=True,
        capture_output=True, check=False, timeout=300,
    )  # fmt: skip


def test_a_run_records_what_counted_and_a_check_makes_it_again(project):
    """Seed and steps of the file; a check elsewhere is not touched by the defaults there."""
    done = samebits(project, "run", "--record", "a.sbr", "train.py")
    assert done.returncode == 0, done.stderr
    assert "samebits: defaults: --seed 7 (tool.samebits.seed in " in done.stderr
    assert "2 steps recorded" in done.stderr
    with RecordReader(project / "a.sbr") as record:
        assert (record.info.control["seed"], record.info.steps) == (7, 2)

    (project / "pyproject.toml").write_text("[tool.samebits]\nseed = 8\nsteps = 3\n")
    done = samebits(project, "check", "a.sbr", SAMEBITS_SEED="9", SAMEBITS_PORTABLE="1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("identical")


def test_verify_takes_defaults_too_and_json_stays_json(project):
    """Without a seed the script is different; the line about defaults is on stderr."""
    done = samebits(project, "verify", "train.py", SAMEBITS_JSON="1", SAMEBITS_VERIFY_STEPS="1")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["verdict"] == "identical"
    assert "--steps 1 (SAMEBITS_VERIFY_STEPS)" in done.stderr
    done = samebits(project, "verify", "--quick", "train.py", SAMEBITS_SEED="")
    assert done.returncode == 1, done.stderr
    assert "defaults" not in done.stderr


def test_ranks_get_no_defaults_of_their_own(project):
    """They get the options of `verify`: a default of `run` that cannot be used does not matter."""
    (project / "pyproject.toml").write_text(
        "[tool.samebits]\nseed = 7\n[tool.samebits.run]\nsteps = 2\nlevel = 3\n"
    )
    done = samebits(project, "verify", "--nproc-per-node", "2", "train.py")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 steps" in done.stdout
    assert done.stderr.count("samebits: defaults:") == 1
