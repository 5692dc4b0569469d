"""The fidelity table: a script under samebits does what it does under bare Python.

Each row runs under bare Python, in a child as `samebits.recording.launch` starts it but without recording,
and launched and recorded; what can be seen from outside must be the same. A few rows go through the command
line too.
"""

from __future__ import annotations

import os
import py_compile
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from fidelity_rows import DIFFERENT, ROWS, Row
from fidelity_sources import WRAPPED

import samebits
from samebits.recording.launch import BOOTSTRAP

SOURCE = str(Path(samebits.__file__).absolute().parent.parent)
ONLY_RUN = """\
from samebits.recording.runner import Target, run_target
def main(words):
    if words[0] == "-m":
        return run_target(Target(None, words[1], tuple(words[2:]))).exit_status
    return run_target(Target(words[0], None, tuple(words[1:]))).exit_status
"""
RUNNER_ONLY = BOOTSTRAP.replace("from samebits.recording.child import main\n", ONLY_RUN)
LAUNCHED = """\
import os, signal, sys
sys.path.append({!r})
from samebits.recording.launch import Launch, launch
from samebits.recording.runner import Target
from samebits.recording.settings import RecordingSettings
words = sys.argv[1:]
is_module = words[0] == "-m"
target = Target(None, words[1], tuple(words[2:])) if is_module else Target(words[0], None, tuple(words[1:]))
outcome = launch(Launch(target, RecordingSettings("../r.sbr", overwrite=True).to_json(), {{}}))
if outcome.signal:
    signal.signal(outcome.signal, signal.SIG_DFL)
    os.kill(os.getpid(), outcome.signal)
sys.exit(outcome.status)
"""
COMMAND_LINE = "import sys\nsys.path.append({!r})\nfrom samebits.cli.main import main\nsys.exit(main())\n"
IN_FULL = ("arguments", "exit 3", "traceback", "interrupt", "killed by SIGTERM", "module", "pool by spawn")
INPUT = b"first line\nthe rest\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the script is run; links resolved, as `sys.path` shows them."""
    place = tmp_path.resolve() / "work"
    place.mkdir()
    (place / "sub").mkdir()
    (place / "data.txt").write_text("data")
    (tmp_path / "cli").mkdir()
    (tmp_path / "cli" / "launched").write_text(LAUNCHED.format(SOURCE))
    (tmp_path / "cli" / "samebits").write_text(COMMAND_LINE.format(SOURCE))
    return place


def write(row: Row, folder: Path) -> None:
    """Make the files of a row."""
    for name, content in row.files.items():
        form, _, inner = name.rpartition(":")
        data = content if isinstance(content, bytes) else content.encode()
        if form == "zip":
            with zipfile.ZipFile(folder / "app.zip", "a") as archive:
                archive.writestr(inner, data)
        elif form == "link":
            (folder / inner).symlink_to(os.fsdecode(data))
        else:
            path = folder / inner
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(data)
            if form == "pyc":
                compiled = Path(py_compile.compile(str(path), cfile=str(folder / "probe.pyc"), doraise=True))
                (folder / "hidden.bin").write_bytes(compiled.read_bytes())
                (folder / "cut.pyc").write_bytes(compiled.read_bytes()[:40])


def seen(row: Row, folder: Path, way: str) -> tuple[bytes, bytes, int]:
    """What is seen from outside when a row is run in some way."""
    programs = folder.parent / "cli"
    before = {
        "bare": [],
        "runner": ["-c", RUNNER_ONLY, SOURCE],
        "launched": [str(programs / "launched")],
        "command": [str(programs / "samebits"), "run", "--record", "../r.sbr", "--force"],
        "controlled": [str(programs / "samebits"), "run", "--record", "../r.sbr", "--force", "--seed", "3"],
        "op level": [str(programs / "samebits"), "run", "--record", "../r.sbr", "--force", "--level", "op"],
    }[way]
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "SAMEBITS", "COLUMNS"))}
    with Path(row.stdout or os.devnull).open("wb") as stdout:
        done = subprocess.run(
            [sys.executable, *row.options, *before, *row.command],
            cwd=folder,
            env={**environment, **row.environment},
            input=INPUT,
            stdout=stdout if row.stdout else subprocess.PIPE,
            stderr=subprocess.STDOUT if row.merged else subprocess.PIPE,
            timeout=60,
            check=False,
        )
    stdout_bytes, stderr_bytes = plain(done.stdout or b""), plain(done.stderr or b"")
    if way in ("command", "controlled", "op level"):
        last_line = re.compile(rb"^samebits: [^\n]*\.\./r\.sbr[^\n]*\n\Z", re.MULTILINE)
        stdout_bytes, stderr_bytes = last_line.sub(b"", stdout_bytes), last_line.sub(b"", stderr_bytes)
    return stdout_bytes, stderr_bytes, done.returncode


def plain(output: bytes) -> bytes:
    """Without addresses and durations."""
    return re.sub(rb"in \d+\.\d+s", b"in 0s", re.sub(rb"0x[0-9a-f]+", b"0x", output))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_same_as_bare_python(row: Row, folder: Path) -> None:
    """Output, errors and exit status are those of bare Python."""
    if sys.version_info < row.since:
        pytest.skip(f"new in Python {row.since}")
    write(row, folder)
    expected = seen(row, folder, "bare")
    assert seen(row, folder, "runner") == expected
    assert seen(row, folder, "launched") == expected


@pytest.mark.parametrize("row", [row for row in ROWS if row.name in IN_FULL], ids=lambda row: row.name)
def test_same_on_the_command_line(row: Row, folder: Path) -> None:
    """`samebits run` adds nothing but its own last line."""
    write(row, folder)
    expected = seen(row, folder, "bare")
    assert seen(row, folder, "command") == expected


@pytest.mark.parametrize("way", ["controlled", "op level"])
def test_a_traceback_goes_through_wrappers(folder: Path, way: str) -> None:
    """What control and the recording of ops put around functions has no frame, in no link of the chain."""
    row = next(row for row in ROWS if row.files.get("probe.py") == WRAPPED)
    write(row, folder)
    expected = seen(row, folder, "bare")
    assert expected[1].count(b"Traceback") == 3
    assert seen(row, folder, way) == expected


@pytest.mark.parametrize("row", DIFFERENT, ids=lambda row: row.name)
def test_known_difference(row: Row, folder: Path) -> None:
    """What is listed as different still is, apart from stdout and the status; else the list is too long."""
    write(row, folder)
    bare, ours = seen(row, folder, "bare"), seen(row, folder, "runner")
    assert (ours[0], ours[2]) == (bare[0], bare[2])
    assert ours[1] != bare[1]
