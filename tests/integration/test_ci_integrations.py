"""The GitHub Action and the pre-commit hook of this repository, by running what they run."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
SCRIPT = """\
import torch

w = torch.zeros(3, requires_grad=True)
optimizer = torch.optim.SGD([w], lr=0.5)
for step in range(3):
    loss = (w - 1).square().sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def run(folder: Path, command: list[str], **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command with this interpreter first on the path."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, **variables}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=300
    )


def git(folder: Path, *words: str) -> None:
    """Run git, as somebody."""
    names = ["-c", "user.name=Somebody", "-c", "user.email=somebody@example.org"]
    subprocess.run(["git", "-C", str(folder), *names, *words], capture_output=True, check=True)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with a lock of two entries."""
    folder = tmp_path_factory.mktemp("ci")
    git(folder, "init", "-q")
    (folder / ".gitignore").write_text(".samebits/\nsamebits-reports/\n")
    (folder / "train.py").write_text(SCRIPT)
    for name in ("first", "second"):
        done = run(folder, ["samebits", "lock", "--trace", "0", "--seed", "0", "--name", name, "train.py"])
        assert done.returncode == 0, done.stderr
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "one")
    return folder


def check_step() -> dict:
    """The step of the action that checks."""
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    *_, step = action["runs"]["steps"]
    return step


def run_action(folder: Path, summary: Path, **inputs: str) -> subprocess.CompletedProcess[str]:
    """Run that step as the runner does, with the inputs' defaults."""
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    values = {name: spec["default"] for name, spec in action["inputs"].items()} | inputs
    step = check_step()
    variables = {
        name: re.sub(r"\$\{\{ inputs\.(\w+) \}\}", lambda match: values[match[1]], text)
        for name, text in step["env"].items()
    }
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]  # as GitHub's runner
    return run(folder, command, GITHUB_STEP_SUMMARY=str(summary), **variables)


def test_the_action_passes_and_fails_with_the_lock(project, tmp_path):
    """Its status is that of `check`, its reports are written, and the summary shows the text."""
    copy = Path(shutil.copytree(project, tmp_path / "copy"))
    summary = tmp_path / "summary.md"
    done = run_action(copy, summary)
    assert done.returncode == 0, done.stderr
    assert (copy / "samebits-reports" / "junit.xml").is_file()
    (copy / "train.py").write_text(SCRIPT.replace("lr=0.5", "lr=0.25"))
    done = run_action(copy, summary, entries="\nsecond\n")
    assert done.returncode == 1, done.stderr
    assert "first" not in (copy / "samebits-reports" / "junit.xml").read_text()
    text = summary.read_text()
    assert "first" in text.split("second")[0]
    assert "second: your change" in text
    assert (copy / "samebits-reports" / "check.sarif").is_file()
    assert not (copy / "samebits-check.txt").exists()


def test_the_summary_says_why_nothing_could_be_judged(project, tmp_path):
    """The line that `check` writes on stderr is in the log and in the summary."""
    copy = Path(shutil.copytree(project, tmp_path / "copy"))
    summary = tmp_path / "summary.md"
    done = run_action(copy, summary, lock="none.lock")
    assert done.returncode == 2
    assert "none.lock" in done.stderr
    assert "none.lock" in summary.read_text()
    assert not (copy / "samebits-errors.txt").exists()


def test_the_action_installs_this_repository_by_default():
    """Then the version of the action is that of the program."""
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    install = action["runs"]["steps"][0]
    assert install["env"]["SOURCE"] == "${{ inputs.install || github.action_path }}"
    assert (ROOT / "pyproject.toml").is_file()


def test_the_hook_runs_under_pre_commit(project, tmp_path):
    """By `pre-commit try-repo`, in a repository of its own."""
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    shutil.copy(ROOT / ".pre-commit-hooks.yaml", hooks)
    git(hooks, "init", "-q")
    git(hooks, "add", "-A")
    git(hooks, "commit", "-q", "-m", "hooks")
    copy = Path(shutil.copytree(project, tmp_path / "copy"))
    command = [sys.executable, "-m", "pre_commit", "try-repo", str(hooks), "samebits-check", "--all-files"]
    home = {"PRE_COMMIT_HOME": str(tmp_path / "home"), "HOME": str(tmp_path)}
    done = run(copy, command, **home)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Passed" in done.stdout
    (copy / "train.py").write_text(SCRIPT.replace("lr=0.5", "lr=0.25"))
    done = run(copy, command, **home)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "DIFFERENT" in done.stdout
