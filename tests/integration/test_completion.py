"""Completion in real shells: what Tab writes, in a terminal."""

from __future__ import annotations

import os
import pty
import select
import shutil
import subprocess
import sys
import time

import pytest
from cli_support import environment

CASES = {
    "samebits verif": "samebits verify ",
    "samebits portable-": "samebits portable-ops ",
    "samebits run --on-d": "samebits run --on-drift ",
    "samebits run --on-drift resto": "samebits run --on-drift restore ",
    "samebits verify --keyed": "samebits verify --keyed-samples ",
    "samebits run --seed 3 tra": "samebits run --seed 3 training.py ",
    "samebits lock --lock tra": "samebits lock --lock training.py ",
    "samebits verify --pin seed-nu": "samebits verify --pin seed-numpy ",
    "samebits completion ba": "samebits completion bash ",
}
STARTS = {
    "bash": ["bash", "--norc", "--noprofile", "-i"],
    "zsh": ["zsh", "-f", "-i"],
}
READIES = {
    "bash": "PS1='@ '; bind 'set bell-style none'; source ./script",
    "zsh": "PS1='@ '; fpath=($PWD $fpath); autoload -Uz compinit; compinit -u -D",
}
NAMES = {"zsh": "_samebits"}  # a function in a folder of $fpath
LIMIT_S = 60


def script_for(shell: str, folder) -> None:
    """Write the script of a shell into a folder, with a file to complete."""
    done = subprocess.run(
        [sys.executable, "-m", "samebits", "completion", shell],
        text=True, capture_output=True, env=environment(), check=True, timeout=120,
    )  # fmt: skip
    assert not done.stderr
    (folder / NAMES.get(shell, "script")).write_text(done.stdout)
    (folder / "training.py").write_text("import torch\n")


class Terminal:
    """An interactive shell in a terminal."""

    def __init__(self, command, folder):
        variables = environment(TERM="dumb", HISTFILE="/dev/null", HOME=str(folder), COLUMNS="200")
        pid, self.descriptor = pty.fork()
        if pid == 0:  # pragma: no cover
            os.chdir(folder)
            os.execvpe(command[0], command, variables)  # noqa: S606
        self.pid, self.seen = pid, ""

    def type(self, text: str) -> None:
        """Type keys."""
        os.write(self.descriptor, text.encode())

    def wait_for(self, text: str) -> None:
        """Read until a text is there."""
        limit = time.monotonic() + LIMIT_S
        while text not in self.seen:
            assert select.select([self.descriptor], [], [], max(0, limit - time.monotonic()))[0], self.seen
            self.seen += os.read(self.descriptor, 4096).decode(errors="replace")

    def close(self) -> None:
        """End it."""
        os.close(self.descriptor)
        os.waitpid(self.pid, 0)


@pytest.mark.parametrize("shell", STARTS)
def test_tab_completes(shell, tmp_path):
    """Commands, options, their values and files, each where it is the only one that begins so."""
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    script_for(shell, tmp_path)
    terminal = Terminal(STARTS[shell], tmp_path)
    try:
        terminal.type(f"{READIES[shell]}; echo rea''dy\n")
        terminal.wait_for("ready")
        for typed, completed in CASES.items():
            terminal.wait_for("@ ")  # the prompt: the shell reads keys now
            terminal.seen = ""
            terminal.type(f"{typed}\t")
            terminal.wait_for(completed)
            terminal.seen = ""
            terminal.type("\x15\n")  # Ctrl-U empties the line
        terminal.type("exit\n")
    finally:
        terminal.close()


@pytest.mark.parametrize("typed", CASES)
def test_fish_completes(typed, tmp_path):
    """As Tab does; fish says itself what it would write, with what it is for."""
    if shutil.which("fish") is None:
        pytest.skip("fish is not installed")
    script_for("fish", tmp_path)
    done = subprocess.run(
        ["fish", "--no-config", "-c", f"source script; complete -C '{typed}'"],
        cwd=tmp_path, text=True, capture_output=True, env=environment(HOME=str(tmp_path)), check=False,
        timeout=60,
    )  # fmt: skip
    found = {line.partition("\t")[0] for line in done.stdout.splitlines()}
    assert CASES[typed].split()[-1] in found, done


def test_without_the_package_one_line_says_what_to_install(tmp_path):
    """It is an extra."""
    (tmp_path / "shtab.py").write_text("raise ImportError('none')\n")
    done = subprocess.run(
        [sys.executable, "-m", "samebits", "completion", "bash"],
        text=True, capture_output=True, env=environment(PYTHONPATH=str(tmp_path)), check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 2
    assert "the package shtab is not installed" in done.stderr
    assert "pip install 'samebits[completion]'" in done.stderr


def test_other_commands_do_not_load_it(tmp_path):
    """Neither the package nor the parsers of other commands."""
    code = (
        "import sys; from samebits.cli.main import main; main(['explain', 'usage']); "
        "print([name for name in sys.modules if name == 'shtab' or name == 'tomllib' "
        "or (name.startswith('samebits.cli.') and name.split('.')[2] in ('completion', 'verify', 'run'))])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path, text=True, capture_output=True, env=environment(), check=True, timeout=120,
    )  # fmt: skip
    assert done.stdout.splitlines()[-1] == "[]"
