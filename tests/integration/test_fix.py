"""`verify --fix` on scripts with one planted fault: the patch is found, confirmed, applied, and holds."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from cli_support import judged, samebits, write
from fault_scripts import ORDER_OF_A_SET, SEED_OF_THE_CLOCK, TRAIN

FAULTS = {
    "never seeded": "import torch\n\ndef data(step):\n    return torch.ones(3, 4)\n",
    "global of numpy": """\
import numpy as np
import torch
torch.manual_seed(0)
def data(step):
    return torch.from_numpy(np.random.rand(3, 4)).float()
""",
    "own generator": """\
import random
import torch
torch.manual_seed(0)
own = random.Random()
def data(step):
    return torch.tensor([[own.random() for _ in range(4)]])
""",
    "seed of the clock": SEED_OF_THE_CLOCK,
    "order of a set": ORDER_OF_A_SET,
    "uuid": """\
import uuid
import torch
torch.manual_seed(0)
def data(step):
    return torch.tensor([[uuid.uuid4().int % 97 / 97.0] * 4])
""",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_fixed(fault, tmp_path):
    """The files are changed only by --apply, and then the script is identical."""
    script = tmp_path / "train.py"
    script.write_text(FAULTS[fault] + TRAIN)
    before = script.read_bytes()
    found = judged(samebits("verify", "--fix", "--json", "--keep", "a", script, cwd=tmp_path, timeout=900))
    assert found["verdict"] == "different"
    assert found["fix"]["confirmed"] is True, found["fix"]
    assert found["findings"][0]["remedy"]["confirmed"] is True
    assert script.read_bytes() == before
    assert not found["fix"]["applied"]
    subprocess.run(["git", "apply", str(tmp_path / "a" / "fix.diff")], cwd=tmp_path, check=True)
    again = samebits("verify", "--no-localise", "--keep", "b", script, cwd=tmp_path, timeout=900)
    assert again.returncode == 0, again.stdout


def test_two_faults_in_two_files_are_applied_together(tmp_path):
    """The second one shows, or was seen at once; both files are changed."""
    write(tmp_path, "source.py", """
        import numpy as np
        import torch
        rng = np.random.default_rng()
        def data(step):
            return torch.from_numpy(rng.normal(size=(3, 4))).float()
    """)  # fmt: skip
    script = tmp_path / "train.py"
    script.write_text("import torch\nfrom source import data\n" + TRAIN)
    found = samebits("verify", "--fix", "--apply", "--keep", "a", script, cwd=tmp_path, timeout=900)
    assert "fix: applied, confirmed by" in found.stdout
    assert "default_rng(0)" in (tmp_path / "source.py").read_text()
    assert "torch.manual_seed(0)" in script.read_text()
    again = samebits("verify", "--no-localise", "--keep", "b", script, cwd=tmp_path, timeout=900)
    assert again.returncode == 0, again.stdout


def test_what_has_no_patch_says_why(tmp_path):
    """A loop for a number of seconds: how many steps it should be is the user's to say."""
    script = write(tmp_path, "train.py", """
        import time
        import torch
        torch.manual_seed(0)
        x = torch.ones(3)
        end = time.perf_counter() + 0.05
        while time.perf_counter() < end:
            x = x + torch.rand(3)
        print(x.sum().item())
    """)  # fmt: skip
    result = samebits("verify", "--fix", "--keep", "a", script, cwd=tmp_path, timeout=900)
    assert result.returncode == 1
    assert "fix: no patch could be made" in result.stdout
    assert "not changed: " in result.stdout
    assert not Path(tmp_path / "a" / "fix.diff").exists()


def test_apply_needs_fix(tmp_path):
    """It would write what was never looked for."""
    script = write(tmp_path, "train.py", "x = 1\n")
    result = samebits("verify", "--apply", script, cwd=tmp_path)
    assert result.returncode == 2
    assert "--apply writes the change that --fix finds" in result.stderr
