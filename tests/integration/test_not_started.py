"""A run whose interpreter cannot be started, or ends before the record begins, is told with its reason."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from cli_support import SEEDED, complaints, environment, samebits, write

if TYPE_CHECKING:
    from pathlib import Path

# As if `samebits` had been installed for an interpreter that has become what the first argument says.
COMMAND_LINE = (
    "import sys; sys.executable = sys.argv.pop(1); from samebits.cli.main import main; sys.exit(main())"
)
COMMANDS = {
    "run": (),
    "verify": (),
    "resume-check": ("--resume-args=--resume",),
    "cost": (),
    "spread": ("--seeds", "2"),
}
JUDGING = [name for name in COMMANDS if name != "run"]  # that has the status of the script
ENDINGS = {
    "exit 126": ("ended with exit status 126", 126),
    "exit 127": ("ended with exit status 127", 127),
    "exit 3": ("ended with exit status 3", 3),
    "kill -KILL $$": ("ended by SIGKILL", -9),
    "ulimit -c 0; kill -SEGV $$": ("ended by SIGSEGV", -11),
}


def stand_in(folder: Path, source: str) -> Path:
    """A program in the place of the interpreter."""
    path = folder / "python"
    path.write_text(f"#!/bin/sh\n{source}\n")
    path.chmod(0o755)
    return path


def ran(command: str, interpreter: Path) -> subprocess.CompletedProcess[str]:
    """What `samebits COMMAND` says where the interpreter is this one."""
    folder = interpreter.parent
    script = write(folder, "train.py", SEEDED, STEPS=20)
    words = [sys.executable, "-c", COMMAND_LINE, str(interpreter), command, *COMMANDS[command], script.name]
    return subprocess.run(
        words, cwd=folder, env=environment(), capture_output=True, text=True, timeout=120, check=False
    )


def said(command: str, result: subprocess.CompletedProcess[str]) -> str:
    """The sentence, however the terminal breaks it."""
    assert result.returncode == 2, result.stdout + result.stderr
    assert "Traceback" not in result.stderr
    lines = complaints(result.stderr)
    if command == "verify":
        assert not lines
        return " ".join(result.stdout.split("\n\n")[0].split())
    return " ".join([*lines, *result.stdout.split()])


@pytest.mark.parametrize("command", JUDGING)
@pytest.mark.parametrize("source", ENDINGS)
def test_how_the_run_ended(command, source, tmp_path):
    """The status in words, or the signal by its name; never the number that a shell makes of a signal."""
    text = said(command, ran(command, stand_in(tmp_path, source))).replace(str(tmp_path.parent), "")

    words, status = ENDINGS[source]
    assert words in text
    assert status > 0 or str(128 - status) not in text


@pytest.mark.parametrize("command", ["verify", "resume-check"])
@pytest.mark.parametrize(
    ("source", "advice"),
    [
        ("exit 126", "the interpreter could not be loaded; see what `PYTHON -c pass` prints"),
        ("exit 127", "the interpreter could not be loaded; see what `PYTHON -c pass` prints"),
        ("exit 3", "what it printed on stderr says why (it was run by PYTHON)"),
        ("ulimit -c 0; kill -SEGV $$", "what it printed on stderr says why (it was run by PYTHON)"),
        ("kill -KILL $$", "a process killed without a message has usually run out of memory"),
    ],
)
def test_what_to_do(command, source, advice, tmp_path):
    """The advice fits the status."""
    interpreter = stand_in(tmp_path, source)
    text = said(command, ran(command, interpreter))

    assert "train.py ended " in text
    assert "before its record was begun" in text
    assert advice.replace("PYTHON", str(interpreter)) in text


def test_verify_as_json(tmp_path):
    """The reason is in the object."""
    interpreter = stand_in(tmp_path, "exit 127")
    write(tmp_path, "train.py", SEEDED, STEPS=3)
    words = [sys.executable, "-c", COMMAND_LINE, str(interpreter), "verify", "--json", "train.py"]
    result = subprocess.run(
        words, cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=120, check=False
    )

    assert result.returncode == 2
    answer = json.loads(result.stdout)
    assert answer["verdict"] == "not_judged"
    assert "could not be loaded" in answer["reason"]


@pytest.mark.parametrize("source", ENDINGS)
def test_run_has_the_ending_of_the_interpreter(source, tmp_path):
    """It is in the place of `samebits run`, so there is nothing of ours to say."""
    result = ran("run", stand_in(tmp_path, source))

    assert result.returncode == ENDINGS[source][1]
    assert complaints(result.stderr) == []


@pytest.mark.parametrize("command", COMMANDS)
def test_what_is_no_program(command, tmp_path):
    """The system's reason, and the same message for every command."""
    interpreter = tmp_path / "python"
    interpreter.write_bytes(b"\x7fELF\x02\x01\x01" + bytes(64))
    for mode, reason in ((0o644, "Permission denied"), (0o755, "Exec format error")):
        os.chmod(interpreter, mode)
        result = ran(command, interpreter)
        assert result.returncode == 2
        line = complaints(result.stderr)[-1]  # `resume-check` says before what it does
        assert f"{interpreter} could not be started: {reason}" in line
        assert "docs/reference/messages.md#child-start" in result.stderr


@pytest.mark.parametrize(
    ("end", "expected"),
    [
        ("os.kill(os.getpid(), signal.SIGSEGV)", "failed: killed by SIGSEGV"),
        ("sys.exit(3)", "ended with exit status 3"),
    ],
)
def test_how_the_whole_run_of_resume_check_ended(end, expected, tmp_path):
    """Once its record was begun."""
    source = f"""
    import os, resource, signal, sys
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    {end}
    """
    script = write(tmp_path, "train.py", SEEDED + source, STEPS=4)
    result = samebits("resume-check", "--resume-args=", script.name, cwd=tmp_path)

    assert result.returncode == 2, result.stdout + result.stderr
    assert f"the whole run of train.py {expected}" in " ".join(result.stdout.split())
