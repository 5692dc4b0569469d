"""A console script and `-m package`: the program is an installed package, and its lines are the user's."""

from __future__ import annotations

import site
import subprocess
import sys
import venv

import pytest
from cli_support import judged

CLI = """
import uuid
import torch
from toytrain.loop import fit


def main():
    folder = f"run-{uuid.uuid4()}"
    torch.seed()
    fit(folder)
"""
LOOP = """
import torch


def fit(folder):
    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        (model(torch.ones(4, 3)) - 1).square().mean().backward()
        optimizer.step()
    print(folder)
"""
CONSOLE = "import sys\nfrom toytrain.cli import main\nif __name__ == '__main__':\n    sys.exit(main())\n"


@pytest.fixture
def place(tmp_path):
    """An environment of its own, in which the package is installed; what is installed here is there too."""
    home = tmp_path / "env"
    venv.create(home, symlinks=True)
    (packages,) = home.glob("lib/python*/site-packages")
    ours = [path for path in site.getsitepackages() if path.endswith("site-packages")]
    (packages / "ours.pth").write_text("".join(f"import site; site.addsitedir({path!r})\n" for path in ours))
    (packages / "toytrain").mkdir()
    for name, text in (("__init__", ""), ("cli", CLI), ("loop", LOOP), ("__main__", CONSOLE)):
        (packages / "toytrain" / f"{name}.py").write_text(text)
    (home / "bin" / "toytrain").write_text(CONSOLE)
    return home


@pytest.mark.skipif(sys.platform == "win32", reason="console scripts are programs there")
@pytest.mark.parametrize("target", [["-m", "toytrain"], ["env/bin/toytrain"]])
def test_the_line_is_one_of_the_package(tmp_path, place, target):
    """A run folder that is named by a uuid has no part in it: the generator is seeded by chance."""
    command = [place / "bin" / "python", "-m", "samebits", "verify", "--json", "--no-interventions", *target]
    done = subprocess.run(command, check=False, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    (first, *_) = judged(done)["findings"]
    assert (first["cause"], first["site"]["line"]) == ("unseeded-torch", 9), first
    assert first["site"]["file"].endswith("toytrain/cli.py")
