"""Higher-order ops in scripts at op level, where the compiler that some of them use is off."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

START = """
import torch

torch.manual_seed(0)
layer = torch.nn.Linear(4, 4)
x, z = torch.randn(4, 4), torch.randn(4, 4, requires_grad=True)
one, other = torch.sin, torch.cos
"""
SCRIPTS = {
    "captured": "y = torch.cond(x.sum() > 0, lambda t: layer(t), lambda t: -layer(t), (x,))",
    "one tensor": "y = torch.cond(x.sum() > 0, one, other, (z,))",
    "a tuple": "y, = torch.cond(x.sum() > 0, lambda t: (one(t),), lambda t: (other(t),), (z,))",
}
END = "\ny.sum().backward()\nprint(y.sum())\n"


def ended(folder, *words, **variables):
    """The status, the output and the last line of an error."""
    done = subprocess.run(
        [sys.executable, *words],
        cwd=folder, capture_output=True, text=True, env={**os.environ, **variables}, check=False,
    )  # fmt: skip
    errors = [line for line in done.stderr.splitlines() if not line.startswith("samebits: ")]
    return done.returncode, done.stdout, errors[-1:]


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_ends_as_it_does_without_the_compiler(name, tmp_path):
    """Of `torch.cond`, not every use has gradients then; step level leaves the compiler on."""
    (tmp_path / "train.py").write_text(START + SCRIPTS[name] + END)
    run = "-m", "samebits", "run", "--record", "a.sbr", "--force"
    without = ended(tmp_path, "train.py", TORCHDYNAMO_DISABLE="1")

    assert (without[0] == 0) is (name == "a tuple")
    assert ended(tmp_path, *run, "--level", "op", "train.py") == without
    assert ended(tmp_path, *run, "train.py")[0] == 0
