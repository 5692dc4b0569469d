"""What the command of a child process runs."""

from __future__ import annotations

import sys

import pytest

from samebits.recording._child_commands import may_train, python_program, split_command, with_variable


@pytest.mark.parametrize(
    "command",
    ["python train.py", "/env/bin/python3.11 -m package", "bash train.sh", "torchrun --nproc-per-node 2 t.py",
     "/bin/sh -c 'cd x && python train.py'", "accelerate launch x", "python -c 'import torch'",
     "which python && python train.py", "file x.py; python x.py"],
)  # fmt: skip
def test_what_may_train(command: str) -> None:
    assert may_train(command)


@pytest.mark.parametrize(
    "command",
    ["git log", "nvidia-smi", "python --version", "python -V", "python -m pip list", "python -c 'import sys'",
     "gcc -I/usr/include/python3.11/ x.c", "python /x/torch/_inductor/compile_worker/__main__.py", "ls a.pyc",
     "pythonic", "which python-config", "file -b /usr/bin/python3.12", "ldd /usr/bin/python3"],
)  # fmt: skip
def test_what_trains_nothing(command: str) -> None:
    assert not may_train(command)


@pytest.mark.parametrize(
    "command",
    ["a && b", "a; b", "a | b", "a > f", "a $X", "a `b`", "a *", "a ~", "X=1 a", "a 'b c'", "a\nb", " "],
)
def test_what_a_shell_does_more_than_start(command: str) -> None:
    assert split_command(command) is None


def test_plain_shell_commands() -> None:
    assert split_command("python  train.py --lr=0.1 x/y.z") == ["python", "train.py", "--lr=0.1", "x/y.z"]


def test_a_variable_before_a_command() -> None:
    assert with_variable(["a", "b c"], "X", "{'1'}") == """X='{'"'"'1'"'"'}' exec a 'b c'"""


def test_programs_of_this_interpreter(tmp_path) -> None:
    script = tmp_path / "train.py"
    script.touch()
    found = python_program([sys.executable, "-u", str(script), "x"])
    assert found is not None
    assert (found[0], found[1].script, found[1].arguments) == (["-u"], str(script), ("x",))
    assert python_program([sys.executable, "-m", "pip", "list"]) is None
    assert python_program([sys.executable, "-c", "pass"]) is None
    assert python_program([sys.executable, str(tmp_path / "none.py")]) is None
    assert python_program(["git", "log"]) is None
