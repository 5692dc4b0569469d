"""Which installed packages are the program that runs."""

from __future__ import annotations

import os
import sys
import sysconfig

import pytest

from samebits._runtime.frames import LIBRARY, OWN, USER, FrameRanks
from samebits.recording import target
from samebits.recording.runner import Target
from samebits.recording.target import program_folders

CONSOLE = """#!/usr/bin/python
import re
import sys
from PACKAGE.cli import main
if __name__ == "__main__":
    sys.exit(main())
"""
OLDER = """#!/usr/bin/python
# EASY-INSTALL-ENTRY-SCRIPT: 'markdown-it-py==3.0','console_scripts','markdown-it'
from importlib.metadata import distribution
sys.exit(load_entry_point('markdown-it-py==3.0', 'console_scripts', 'markdown-it')())
"""


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """An installed package `toytrain`; gives the folder of scripts and of packages."""
    packages, scripts = tmp_path / "site-packages", tmp_path / "bin"
    (packages / "toytrain").mkdir(parents=True)
    (packages / "toytrain" / "__init__.py").touch()
    (packages / "toytrain" / "cli.py").touch()
    (packages / "other.py").touch()
    scripts.mkdir()
    monkeypatch.setattr(sys, "path", [*sys.path, str(packages)])
    real = sysconfig.get_path
    monkeypatch.setattr(
        target.sysconfig, "get_path", lambda name: str(scripts) if name == "scripts" else real(name)
    )
    monkeypatch.chdir(tmp_path)
    return scripts, packages


def of_script(scripts, text):
    """The places for a console script with that text."""
    (scripts / "toy").write_text(text)
    return program_folders(Target(str(scripts / "toy"), None, ()))


def test_the_package_of_a_console_script(installed):
    scripts, packages = installed
    assert of_script(scripts, CONSOLE.replace("PACKAGE", "toytrain")) == (f"{packages}/toytrain{os.sep}",)
    assert of_script(scripts, "from other import main\nmain()\n") == (f"{packages}/other.py",)


def test_an_older_console_script_looks_its_package_up(installed):
    scripts, _ = installed
    (found,) = of_script(scripts, OLDER)
    assert found.endswith(f"markdown_it{os.sep}")


def test_the_package_after_m(installed):
    _, packages = installed
    for module in ("toytrain", "toytrain.cli"):
        assert program_folders(Target(None, module, ())) == (f"{packages}/toytrain{os.sep}",)
    assert program_folders(Target(None, "no_such_module", ())) == ()


@pytest.mark.parametrize("module", ["torch.distributed.run", "pytest", "cProfile", "runpy", "samebits"])
def test_what_starts_other_programs_is_none(module):
    assert program_folders(Target(None, module, ())) == ()


def test_an_ordinary_script_has_none(installed):
    """Also one that imports the package, and one that is no Python."""
    scripts, packages = installed
    (packages.parent / "train.py").write_text("import toytrain\n")
    assert program_folders(Target("train.py", None, ())) == ()
    assert of_script(scripts, "#!/bin/sh\nexec python -m toytrain 'a\n") == ()


def test_its_lines_are_the_users(installed):
    _, packages = installed
    path = str(packages / "toytrain" / "cli.py")
    assert FrameRanks(()).rank_of_file(path) == LIBRARY
    ranks = FrameRanks((f"{packages}/toytrain{os.sep}",))
    assert ranks.rank_of_file(path) == USER
    assert ranks.rank_of_file(str(packages / "toytrainer.py")) == LIBRARY
    assert ranks.rank_of_file(str(packages / "torch" / "nn" / "modules.py")) == OWN
