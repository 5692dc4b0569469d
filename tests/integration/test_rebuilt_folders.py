"""A run of one virtual environment, made again from a rebuilt folder that installs all of it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).parents[2]
SCRIPT = """\
import torch
import pure_number
from mymodel import network
torch.manual_seed(0)
model = network()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1 * pure_number.ONE)
for _ in range(4):
    optimizer.zero_grad()
    model(torch.randn(8, 4)).square().mean().backward()
    optimizer.step()
"""
MODEL = "import torch\ndef network():\n    return torch.nn.Linear(4, 2)\n"
PROJECT = """\
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"
[project]
name = "{name}"
version = "1.0"
"""


def run(words: Sequence[str | Path], folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    outside = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    command, environment = list(map(str, words)), {**outside, **variables}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def package(folder: Path, name: str, text: str) -> Path:
    """Write the source of a package with one module."""
    folder.mkdir(parents=True)
    (folder / "pyproject.toml").write_text(PROJECT.format(name=name))
    (folder / f"{name}.py").write_text(text)
    return folder


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel of samebits and one of a small package."""
    folder = tmp_path_factory.mktemp("wheels")
    source = tmp_path_factory.mktemp("source")
    names = run(["git", "ls-files", "-z"], ROOT).stdout.split("\0")
    for name in filter(os.path.isfile, (ROOT / name for name in names if name)):
        target = source / Path(name).relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(name, target)
    package(folder / "source/pure_number", "pure_number", "ONE = 1.0\n")
    for each in (source, folder / "source/pure_number"):
        run([sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", folder, each], folder)
    return folder


@pytest.fixture(scope="module")
def project(wheels: Path) -> Path:
    """A repository with an editable package, installed in a virtual environment of its own."""
    top = wheels / "pro ject"
    package(top / "packages/mymodel", "mymodel", MODEL)
    (top / "train.py").write_text(SCRIPT)
    (top / ".gitignore").write_text("venv\n.samebits\n*.sbr\n*.egg-info\nbuild\n__pycache__\n")
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    for words in (["init", "-q"], ["add", "."], [*identity, "commit", "-qm", "one"]):
        run(["git", *words], top)
    run([sys.executable, "-m", "venv", top / "venv"], top)
    torch = f"torch=={metadata.version('torch')}"
    samebits = next(wheels.glob("samebits-*.whl"))
    own = ["-e", "./packages/mymodel", next(wheels.glob("pure_number-*.whl")), torch, samebits]
    run([top / "venv/bin/python", "-m", "pip", "install", "-q", *own], top)
    (top / "packages/mymodel/mymodel.py").write_text(MODEL.replace("4, 2", "4, 3"))
    run([top / "venv/bin/samebits", "run", "--record", "golden.sbr", "train.py"], top)
    return top


def test_a_run_of_one_environment_is_made_again_in_another(
    wheels: Path, project: Path, tmp_path: Path
) -> None:
    """With a package from the repository, changed since the commit, and one from a wheel on the disk."""
    again = tmp_path / "ag ain"
    told = run([project / "venv/bin/samebits", "rebuild", "golden.sbr", "--into", again], project).stdout
    assert "the file of pure-number 1.0 (pure_number-1.0-py3-none-any.whl)" in told
    assert f"torch=={metadata.version('torch')}\n" in (again / "requirements.txt").read_text()
    assert "-e ./packages/mymodel" in (again / "install.sh").read_text()
    (project / "venv").rename(project / "another")  # nothing of it may be used

    variables = {
        "SAMEBITS": str(next(wheels.glob("samebits-*.whl"))),
        "PIP_FIND_LINKS": f"{wheels.as_uri()} {os.environ.get('PIP_FIND_LINKS', '')}",
        "PIP_RETRIES": "0",
        "PYTHON": sys.executable,
    }
    done = run([again / "run.sh"], tmp_path, **variables)
    assert done.stdout.startswith("identical: 2 runs, 4 steps"), done.stdout
    assert "nothing that can change bits" in done.stderr, done.stderr
    assert "4, 3" in (again / "code/packages/mymodel/mymodel.py").read_text()
    listed = run([again / "venv/bin/python", "-m", "pip", "list", "--editable"], tmp_path).stdout
    assert "mymodel" in listed
