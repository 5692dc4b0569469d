"""A recorded run made again: here by `check`, and from a rebuilt folder."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

SCRIPT = """\
import sys
import torch
import helper
torch.manual_seed(0)
text = open("data.txt").read()
layer = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(layer.parameters(), lr=float(sys.argv[1]) if len(sys.argv) > 1 else 0.1)
for _ in range(4):
    loss = helper.loss(layer, torch.randn(8, 4)) * len(text)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
HELPER = "def loss(layer, x):\n    return layer(x).square().mean()\n"


def samebits(folder: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "SAMEBITS_CACHE": str(folder / "../cache"), **variables}
    command = [sys.executable, "-m", "samebits", *words]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "train.py").write_text(SCRIPT)
    (folder / "helper.py").write_text(HELPER)
    (folder / "data.txt").write_text("hello")
    (folder / ".gitignore").write_text(".samebits\n*.sbr\n")
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    for words in (["init", "-q"], ["add", "."], [*identity, "commit", "-qm", "one"]):
        subprocess.run(["git", "-C", str(folder), *words], check=True, capture_output=True)
    return folder


def recorded(project: Path, *words: str) -> str:
    done = samebits(project, "run", "--record", "golden.sbr", *words)
    assert done.returncode == 0, done.stderr
    return "golden.sbr"


def test_the_same_run_checks_as_identical(project: Path) -> None:
    """Arguments, seed, portable mode and step limit are those of the record."""
    golden = recorded(project, "--seed", "7", "--reseed", "--portable", "--steps", "3", "train.py", "0.2")
    done = samebits(project, "check", golden)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("identical: 2 runs, 3 steps")
    assert (project / ".samebits/train-check-1.sbr").exists()
    again = json.loads(samebits(project, "check", "--json", golden).stdout)
    assert (again["verdict"], again["steps"]) == ("identical", 3)


def test_a_changed_line_is_named_below_the_verdict(project: Path) -> None:
    golden = recorded(project, "train.py")
    (project / "helper.py").write_text(HELPER.replace("square", "abs"))
    done = samebits(project, "check", golden)

    assert done.returncode == 1
    assert done.stdout.startswith("different")
    assert "1 difference that can change bits\n\n1. code of helper: " in done.stdout
    assert "can change: everything (it is an input of the run)" in done.stdout


def test_arguments_that_the_record_lacks_are_asked_for(project: Path) -> None:
    golden = recorded(project, "--no-arguments", "train.py", "0.3")
    refused = samebits(project, "check", golden)
    assert refused.returncode == 2
    assert "expected all of them after `--`" in refused.stderr
    assert samebits(project, "check", golden, "--", "0.3").returncode == 0
    assert samebits(project, "check", golden, "--", "0.4").returncode == 1


def test_a_module_is_checked_as_a_module(project: Path) -> None:
    golden = recorded(project, "-m", "train", "0.1")
    done = samebits(project, "check", golden, "--record", "new.sbr")
    assert done.returncode == 0, done.stderr
    assert (project / "new.sbr").exists()
    assert samebits(project, "check", golden, "--record", "new.sbr").returncode == 2


def test_what_cannot_be_checked_is_refused(project: Path) -> None:
    golden = recorded(project, "train.py")
    (project / "train.py").unlink()
    missing = samebits(project, "check", golden)
    assert (missing.returncode, missing.stdout) == (2, "")
    assert "train.py" in missing.stderr
    assert samebits(project, "check", "none.sbr").returncode == 2
    assert json.loads(samebits(project, "check", "--json", "none.sbr").stdout)["verdict"] == "not_judged"


def rebuilt(project: Path, *words: str) -> subprocess.CompletedProcess[str]:
    done = samebits(project, "rebuild", "golden.sbr", "--into", "../again", *words)
    assert done.returncode == 0, done.stderr
    return done


def test_a_rebuilt_folder_gives_the_same_bits(project: Path, tmp_path: Path) -> None:
    """With an uncommitted change, a module that git does not know, and in a folder below the repository."""
    (project / "sub").mkdir()
    for name in ("train.py", "helper.py", "data.txt"):
        (project / name).rename(project / "sub" / name)
    (project / "sub/helper.py").write_text(HELPER.replace("square", "abs"))
    subprocess.run(["git", "-C", str(project), "add", "-A"], check=True)
    (project / "sub/own.py").write_text("scale = 3.0\n")
    (project / "sub/train.py").write_text("import own\n" + SCRIPT.replace("* len", "* own.scale * len"))
    done = samebits(project / "sub", "run", "--record", "../golden.sbr", "train.py", "0.2")
    assert done.returncode == 0, done.stderr
    said = rebuilt(project).stdout
    again = tmp_path / "again"
    (project / "sub/train.py").write_text("raise SystemExit('it must not be used')")

    assert "missing" not in said
    assert "put the data" not in said  # the changes have it
    assert (again / "code/sub/own.py").read_text() == "scale = 3.0\n"
    (again / "venv").symlink_to(sys.prefix)
    checked = subprocess.run([str(again / "run.sh")], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert checked.stdout.startswith("identical")


def test_a_change_in_another_encoding_is_rebuilt_byte_for_byte(project: Path, tmp_path: Path) -> None:
    """Of a file that git tracks and of a new one; the record is valid JSON all the same."""
    latin = "# -*- coding: latin-1 -*-\r\n# caf\u00e9\r\n".encode("latin-1")
    (project / "helper.py").write_bytes(latin + HELPER.encode())
    (project / "sp ace.py").write_bytes(latin + b"scale = 3.0")
    (project / "train.py").write_text("__import__('sp ace')\n" + SCRIPT)
    recorded(project, "train.py")
    said = rebuilt(project).stdout

    assert "missing" not in said
    for name in ("helper.py", "sp ace.py", "train.py"):
        assert (tmp_path / "again/code" / name).read_bytes() == (project / name).read_bytes()
    shown = samebits(project, "show", "--json", "golden.sbr")
    assert (
        "caf\\udce9"
        in json.loads(shown.stdout)["environment"]["patch"]["diff"]
        .encode("ascii", "backslashreplace")
        .decode()
    )


def test_what_a_rebuilt_folder_lacks_is_said(project: Path, tmp_path: Path) -> None:
    (project / "helper.py").write_text(HELPER + 'token = "hf_abcdefghijklmnopqrstuv"\n')
    recorded(project, "train.py")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    shutil.copy(project / "golden.sbr", elsewhere)
    said = samebits(elsewhere, "rebuild", "golden.sbr", "--into", "again").stdout
    assert "missing: the code. The commit is not in this repository" in said
    assert "missing: secrets, which are masked in changes.patch" in said
    assert "hf_abc" not in (elsewhere / "again/changes.patch").read_text()
    assert b"hf_abc" not in (project / "golden.sbr").read_bytes()
    full = samebits(elsewhere, "rebuild", "golden.sbr", "--into", "again")
    assert (full.returncode, "is not empty" in full.stderr) == (2, True)


def test_a_record_without_an_inventory_cannot_be_rebuilt(project: Path) -> None:
    assert samebits(project, "verify", "--keep", "kept", "train.py").returncode == 0
    done = samebits(project, "rebuild", "kept/run-1.sbr", "--into", "again")
    assert done.returncode == 2
    assert "does not hold what is needed" in done.stderr
    assert not (project / "again").exists()


def test_what_the_record_keeps_can_be_limited(project: Path) -> None:
    (project / "helper.py").write_text(HELPER + "# a change\n")
    recorded(project, "--no-data", "--no-changes", "train.py")
    facts = json.loads(samebits(project, "show", "--json", "golden.sbr").stdout)["environment"]
    assert (facts["data"], facts["patch"]) == (None, None)
    assert set(facts["code"]) == {"train.py", "helper"}


def test_files_that_workers_read_are_in_the_record(project: Path) -> None:
    """Also those that are read before a folder is changed; not what the run itself wrote."""
    (project / "train.py").write_text(
        "import os, torch\n"
        "class Files(torch.utils.data.Dataset):\n"
        "    def __len__(self): return 2\n"
        "    def __getitem__(self, i): return float(open(f'{i}.num').read())\n"
        "loader = torch.utils.data.DataLoader(Files(), num_workers=2)\n"
        "open('written.txt', 'w').write('x')\n"
        "open('written.txt').read()\n"
        "layer = torch.nn.Linear(1, 1)\n"
        "for batch in loader:\n"
        "    layer(batch.float()[None]).sum().backward()\n"
    )
    for number in range(2):
        (project / f"{number}.num").write_text(str(number))
    recorded(project, "train.py")
    facts = json.loads(samebits(project, "show", "--json", "golden.sbr").stdout)["environment"]
    assert list(facts["data"]["files"]) == ["0.num", "1.num"]
