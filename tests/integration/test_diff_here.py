"""`samebits diff RECORD` on the machine that made it: what a script does is no difference of the machine."""

from __future__ import annotations

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
