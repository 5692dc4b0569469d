"""What `lock` and `check` write: lock file, records beside it, reports. Nothing else is lost or replaced."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace

import pytest
from cli_support import samebits

from samebits.commands.lock.checking import MadeEntry, write_entries
from samebits.commands.lock.entry import END, LockEntry, LockRow, agree
from samebits.commands.lock.file import LockFile, read_lock, write_lock

IDENTITY = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
TRAIN = """
import torch
open("ran", "w").close()
torch.manual_seed(0)
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    model(torch.ones(8, 4)).square().mean().backward()
    optimizer.step()
"""


def row(step, state="a" * 32):
    """A row of one step."""
    return LockRow(step, step, state, "", ())


def made(name, path=None):
    """An entry that is to be written."""
    entry = LockEntry(name, ("x.py",), None, 1, (row(0), row(END)), samebits="0")
    return MadeEntry(entry, path)


def test_an_update_that_fails_leaves_everything_as_it_was(tmp_path):
    for name in ("train.py", "z.py"):
        (tmp_path / name).write_text(TRAIN)
        assert samebits("lock", name, cwd=tmp_path).returncode == 0
    files = [tmp_path / "samebits.lock", *(tmp_path / "samebits.lock.d").iterdir()]
    before = {path: path.read_bytes() for path in files}
    assert len(before) == 3
    (tmp_path / "train.py").write_text(TRAIN.replace("0.1", "0.3"))
    (tmp_path / "z.py").write_text("raise SystemExit(3)\n")

    done = samebits("check", "--update", "train", "z", cwd=tmp_path)

    assert done.returncode == 2, done.stderr
    assert {path: path.read_bytes() for path in files} == before


COMPILED = """
import torch
torch.manual_seed(0)
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def backend(module, _):
    return lambda *arguments: tuple(each * 1.001 for each in module(*arguments))  # other bits, each time
compiled = torch.compile(model, backend=backend)
for _ in range(3):
    optimizer.zero_grad()
    compiled(torch.ones(8, 4)).square().mean().backward()
    optimizer.step()
"""


def test_a_compiled_model_is_locked_without_its_operations(tmp_path):
    """To record operations switches `torch.compile` off, which gives other bits: no chance is at work."""
    (tmp_path / "train.py").write_text(COMPILED)
    done = samebits("lock", "train.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    told = (
        "the record of its operations has other bits than the run, because it is made without torch.compile"
    )
    assert told in done.stderr
    assert not (tmp_path / "samebits.lock.d").exists()
    assert samebits("check", cwd=tmp_path).returncode == 0


def test_an_entry_that_another_process_wrote_meanwhile_is_kept(tmp_path):
    path = tmp_path / "samebits.lock"
    empty = LockFile(path, {})
    write_entries(empty, [made("one")])
    write_entries(empty, [made("two")])

    assert set(read_lock(path).entries) == {"one", "two"}


def test_a_record_beside_the_lock_counts_only_with_its_bits():
    entry = made("one").entry

    assert agree(entry.rows, [row(0)])
    assert not agree(entry.rows, [row(0, "b" * 32)])
    assert agree(entry.rows, [LockRow(0, 3, "b" * 32, "", ())])


@pytest.mark.parametrize(
    "fields",
    [{"command": ("-m",)}, {"command": ()}, {"steps": -1}, {"max_steps": -3}, {"trace": -1}],
    ids=str,
)
def test_an_entry_that_cannot_be_run_is_damaged(fields, tmp_path):
    path = tmp_path / "samebits.lock"
    write_lock(LockFile(path, {"one": replace(made("one").entry, **fields)}))

    done = samebits("check", cwd=tmp_path)

    assert done.returncode == 2
    assert "is no lock file that samebits wrote" in done.stderr


def test_a_machine_without_git_is_told_so(tmp_path):
    (tmp_path / "train.py").write_text(TRAIN)
    for words in (["init", "-q"], ["add", "."], [*IDENTITY, "commit", "-qm", "one"]):
        subprocess.run(["git", "-C", str(tmp_path), *words], check=True, capture_output=True)
    assert samebits("run", "--record", "a.sbr", "train.py", cwd=tmp_path).returncode == 0
    assert samebits("lock", "train.py", cwd=tmp_path).returncode == 0
    (tmp_path / "train.py").write_text(TRAIN.replace("0.1", "0.3"))
    (tmp_path / "bin").mkdir()

    rebuilt = samebits("rebuild", "a.sbr", "--into", "out", cwd=tmp_path, PATH=str(tmp_path / "bin"))
    checked = samebits("check", cwd=tmp_path, PATH=str(tmp_path / "bin"))

    assert "Git is not on the path" in " ".join(rebuilt.stdout.split())
    assert "git, which has it, is not on the path" in " ".join(checked.stdout.split())


@pytest.mark.parametrize("option", ["--junit", "--sarif"])
def test_reports_replace_only_reports(option, tmp_path):
    (tmp_path / "train.py").write_text(TRAIN)
    assert samebits("lock", "train.py", cwd=tmp_path).returncode == 0
    os.remove(tmp_path / "ran")
    (tmp_path / "ci.yml").write_text("# uploads sarif and junit\n")
    for target in ("train.py", "samebits.lock", "ci.yml", ".", "/proc/x/report"):
        done = samebits("check", option, target, cwd=tmp_path)
        assert done.returncode == 2
        assert "report" in done.stderr
        assert not (tmp_path / "ran").exists()
    assert (tmp_path / "train.py").read_text() == TRAIN

    (tmp_path / "report").touch()
    for _ in range(2):
        assert samebits("check", option, "report", cwd=tmp_path).returncode == 0
    assert (tmp_path / "report").stat().st_size
