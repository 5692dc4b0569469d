"""`samebits diff RECORD` on the machine that made it: what a script does is no difference of the machine."""

from __future__ import annotations

import json

import pytest
from cli_support import samebits

SCRIPT = """
import torch, numpy, os
torch.use_deterministic_algorithms(True)
torch.set_default_dtype(torch.float64)
for i in range(450):
    with open(f"many/{i}") as file:
        file.read()
print(torch.ones(2).sum())
"""


@pytest.mark.parametrize("options", [(), ("--seed", "0"), ("--seed", "0", "--portable")], ids=str)
def test_nothing_differs_where_nothing_changed(options, tmp_path):
    (tmp_path / "many").mkdir()
    for i in range(450):
        (tmp_path / "many" / str(i)).write_text(str(i))
    (tmp_path / "train.py").write_text(SCRIPT)
    assert samebits("run", *options, "--record", "a.sbr", "train.py", cwd=tmp_path).returncode == 0

    same = samebits("diff", "a.sbr", cwd=tmp_path)
    (tmp_path / "train.py").write_text(SCRIPT + "\n")
    edited = samebits("diff", "a.sbr", cwd=tmp_path)

    assert (same.returncode, same.stdout) == (0, "a.sbr and here: nothing that can change bits\n")
    assert edited.returncode == 1
    assert "1 difference that can change bits" in edited.stdout
    assert "code of train.py" in edited.stdout


def test_files_of_the_run_that_are_not_here(tmp_path):
    """That nothing read or used them would be another fact: nothing ran here."""
    (tmp_path / "data.txt").write_text("1")
    (tmp_path / "part.py").write_text("")
    (tmp_path / "train.py").write_text(
        "import torch, part\nopen('data.txt').read()\nprint(torch.ones(2).sum())\n"
    )
    assert samebits("run", "--record", "a.sbr", "train.py", cwd=tmp_path).returncode == 0
    (tmp_path / "data.txt").unlink()
    (tmp_path / "part.py").unlink()

    told = samebits("diff", "a.sbr", cwd=tmp_path)
    text = " ".join(told.stdout.split())

    assert told.returncode == 1
    assert "a.sbr and here: 2 differences that can change bits" in text
    assert "data file data.txt: 6b86b273ff34 (1 byte) and no such file here" in text
    assert "code of part: e3b0c44298fc and not found here" in text


def test_a_package_of_the_run_that_is_not_here(tmp_path):
    """One that was installed from a folder is told by its code."""
    site = tmp_path / "site"
    for name in ("tiny", "own"):
        info = site / f"{name}-1.0.dist-info"
        info.mkdir(parents=True)
        (site / f"{name}.py").write_text("x = 1\n")
        (info / "RECORD").write_text(f"{name}.py,sha256=abc,6\n")
    told = {"url": site.as_uri(), "dir_info": {"editable": True}}
    (site / "own-1.0.dist-info/direct_url.json").write_text(json.dumps(told))
    (tmp_path / "train.py").write_text("import torch, tiny, own\n")
    words = ("run", "--record", "a.sbr", "train.py")
    assert samebits(*words, cwd=tmp_path, PYTHONPATH=str(site)).returncode == 0

    same = samebits("diff", "a.sbr", cwd=tmp_path, PYTHONPATH=str(site))
    assert same.stdout == "a.sbr and here: nothing that can change bits\n"
    text = " ".join(samebits("diff", "a.sbr", cwd=tmp_path).stdout.split())
    assert "package tiny: 1.0 and not installed here" in text
    assert "package own" not in text
