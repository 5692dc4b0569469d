"""Scripts that train in processes of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from textwrap import dedent
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

TRAIN = """
import sys, torch

def train(steps=3):
    if "--seed" in sys.argv:
        torch.manual_seed(0)
    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.randn(4, 3)).sum().backward()
        optimizer.step()

if __name__ == "__main__":
    train()
"""
LAUNCHER = """
import subprocess, sys
subprocess.run([sys.executable, "-m", "train", *sys.argv[1:]], check=True)
subprocess.run([sys.executable, "-c", "pass"], check=True)
"""
PROCESSES = """
import multiprocessing, sys
from train import train

def work(queue):
    train()
    queue.put("done")

def look():
    pass

if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[1])
    queue = context.Queue()
    processes = [context.Process(target=target, args=args) for target, args in ((work, (queue,)), (look, ()))]
    for process in processes:
        process.start()
    print(queue.get())
    for process in processes:
        process.join()
"""
LOKY = """
import sys
from joblib.externals.loky import get_reusable_executor
from train import train

if __name__ == "__main__":
    executor = get_reusable_executor(max_workers=1)
    executor.submit(train).result()
    executor.shutdown()
"""
LOADER = """
import torch

class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 4
    def __getitem__(self, index):
        return torch.ones(2)

from train import train
for batch in torch.utils.data.DataLoader(Data(), num_workers=1):
    train(1)
"""


def samebits(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command."""
    command = [sys.executable, "-m", "samebits", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)


def write(folder: Path, source: str) -> None:
    """The training, and a script that has it done."""
    (folder / "train.py").write_text(dedent(TRAIN))
    (folder / "script.py").write_text(dedent(source))


def records(folder: Path) -> list[str]:
    """The records of children of the first run."""
    return sorted(path.name for path in (folder / ".samebits/script-verify-1/run-1.children").glob("*.sbr"))


@pytest.mark.parametrize(
    ("source", "words", "name"),
    [
        (LAUNCHER, (), "train-1"),
        (PROCESSES, ("fork",), "work-1"),
        (PROCESSES, ("spawn",), "work-1"),
        (LOKY, (), "pool-1"),
    ],
    ids=["subprocess", "fork", "spawn", "loky"],
)
def test_a_child_that_trains_is_judged(
    tmp_path: Path, source: str, words: tuple[str, ...], name: str
) -> None:
    """Only children that train have a record; the verdict, the step and the line are those of the child."""
    write(tmp_path, source)
    same = samebits(tmp_path, "verify", "--json", "script.py", *words, "--seed")
    assert same.returncode == 0, same.stdout + same.stderr
    found = json.loads(same.stdout)
    assert (found["verdict"], found["steps"]) == ("identical", 3)
    assert [note for note in found["notes"] if f"child process {name} was compared" in note]
    assert records(tmp_path) == [f"{name}.sbr"]

    differs = samebits(tmp_path, "verify", "--json", "--no-localise", "script.py", *words)
    assert differs.returncode == 1, differs.stdout + differs.stderr
    found = json.loads(differs.stdout)
    assert found["reason"].startswith(f"in the child process {name}: ")
    assert found["findings"][0]["site"]["file"].endswith("train.py")


def test_a_difference_in_a_child_is_explained(tmp_path: Path) -> None:
    """Down to the operation, the line and the cause, with the remedy tried in the child."""
    write(tmp_path, LAUNCHER)
    result = samebits(tmp_path, "verify", "--json", "script.py")
    assert result.returncode == 1, result.stdout + result.stderr
    first = json.loads(result.stdout)["findings"][0]
    assert (first["kind"], first["cause"]) == ("op", "unseeded-torch")
    assert first["site"]["file"].endswith("train.py")


def test_workers_of_loaders_are_no_children(tmp_path: Path) -> None:
    """They train nothing."""
    write(tmp_path, LOADER)
    result = samebits(tmp_path, "verify", "--json", "script.py", "--seed")
    assert result.returncode == 0, result.stdout + result.stderr
    assert records(tmp_path) == []


REPORTING = """
import subprocess, sys, torch
from train import train
torch.manual_seed(1)
train()
torch.seed()
print(torch.rand(1).item())
subprocess.run([sys.executable, "train.py", *sys.argv[1:]], check=True)
"""


def test_state_only_looks_at_children_too(tmp_path: Path) -> None:
    """The script itself only reports another value; its child trains another model."""
    write(tmp_path, REPORTING)
    differs = samebits(tmp_path, "verify", "--state-only", "--no-localise", "--json", "script.py")
    found = json.loads(differs.stdout)
    assert (differs.returncode, found["state"], found["child"]) == (1, "different", "train.py-1")
    same = samebits(tmp_path, "verify", "--state-only", "--json", "script.py", "--seed")
    found = json.loads(same.stdout)
    assert (same.returncode, found["verdict"], found["state"]) == (0, "different", "identical")


@pytest.mark.parametrize(
    "start",
    [
        "subprocess.run(f'{sys.executable} train.py --seed', shell=True, check=True)",
        "assert os.system(f'{sys.executable} train.py --seed') == 0",
        "subprocess.run([f'{sys.executable} -m train --seed'], shell=True, check=True)",
    ],
    ids=["shell", "os.system", "shell with a list"],
)
def test_a_shell_command_that_only_starts_python_is_recorded(tmp_path: Path, start: str) -> None:
    """Its arguments and its status are as ever."""
    write(tmp_path, f"import os, subprocess, sys\n{start}\n")
    result = samebits(tmp_path, "verify", "--json", "script.py")
    found = json.loads(result.stdout)
    assert (found["verdict"], found["steps"]) == ("identical", 3), result.stderr
    assert len(records(tmp_path)) == 1


def test_a_child_that_cannot_be_recorded_is_named(tmp_path: Path) -> None:
    """With the line that starts it; what trains nothing is not."""
    write(
        tmp_path,
        """
        import subprocess, sys
        subprocess.run(["git", "--version"])
        subprocess.run([sys.executable, "-V"])
        subprocess.run([sys.executable, "-c", "import sys"])
        subprocess.run(["bash", "-c", f"{sys.executable} train.py; true"])
        """,
    )
    found = json.loads(samebits(tmp_path, "verify", "--json", "script.py").stdout)
    assert found["verdict"] == "not_judged"
    (note,) = [note for note in found["notes"] if "was not recorded" in note]
    assert "train.py; true" in note
    assert "(started at script.py:6)" in note


def test_git_as_samebits_asks_it_is_no_child_of_the_script(tmp_path: Path) -> None:
    """It is asked about a script by name, which looks like a program that might train."""
    write(tmp_path, "import torch\ntorch.manual_seed(0)\nprint(torch.randn(2).sum().item())\n")
    who = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
    for words in (["init", "-q"], ["add", "."], [*who, "commit", "-qm", "all"]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    samebits(tmp_path, "run", "script.py")
    shown = samebits(tmp_path, "show", ".samebits/script-1.sbr").stdout
    assert "commit=" in shown
    assert "was not recorded" not in shown


FORKING = """
    import os
    import torch
    torch.manual_seed(0)
    if os.fork() == 0:
        os._exit(0)
    os.wait()
    print(torch.ones(2).sum().item())
"""
BECOMING = """
    import os, sys
    import torch
    print(torch.ones(2).sum().item(), flush=True)
    os.execl(sys.executable, sys.executable, "inner.py")
"""
POOLED = """
    import multiprocessing
    import torch
    with multiprocessing.get_context("fork").Pool(1) as pool:
        print(torch.tensor(pool.map(abs, [1])).sum().item())
"""


@pytest.mark.parametrize(
    ("script", "named"),
    [(FORKING, ["`os.fork()`", "script.py:5"]), (BECOMING, ["inner.py`", "script.py:5"]), (POOLED, [])],
)
def test_a_process_that_cannot_be_followed_is_named(tmp_path, script, named):
    """Also where the script never comes to its own end."""
    (tmp_path / "inner.py").write_text("print('inner')")
    write(tmp_path, script)
    found = json.loads(samebits(tmp_path, "verify", "--json", "script.py").stdout)
    notes = [note for note in found["notes"] if "was not recorded" in note]
    assert len(notes) == bool(named)
    for word in named:
        assert word in notes[0]
