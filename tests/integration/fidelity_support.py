"""Runs a row of the fidelity table, in bare Python or in other ways."""

from __future__ import annotations

import os
import py_compile
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import samebits
from samebits.recording.launch import BOOTSTRAP

if TYPE_CHECKING:
    from fidelity_rows import Row

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
INPUT = b"first line\nthe rest\n"


def work_folder(tmp_path: Path) -> Path:
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
        "coverage": ["-m", "coverage", "run", "--data-file=../coverage"],
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
        stdout_bytes, stderr_bytes = (without_own_line(row, each) for each in (stdout_bytes, stderr_bytes))
    return stdout_bytes, stderr_bytes, done.returncode


def without_own_line(row: Row, output: bytes) -> bytes:
    """Without the line of `samebits run`, which has to be the last one unless the row says why it is not."""
    own_line = re.compile(rb"^samebits: [^\n]*\.\./r\.sbr[^\n]*\n", re.MULTILINE)
    found = [line for line in own_line.finditer(output) if row.late or line.end() == len(output)]
    if not found:
        return output
    assert len(found) == 1, output
    assert not row.late or found[0].end() < len(output), f"it is the last line now, although {row.late}"
    return output[: found[0].start()] + output[found[0].end() :]


def plain(output: bytes) -> bytes:
    """Without addresses and durations, nor the time and process of a line that torch's profiler prints."""
    output = re.sub(rb"^USDT:[\d-]+ [\d:]+ \d+:\d+", b"USDT:", output, flags=re.MULTILINE)
    return re.sub(rb"in \d+\.\d+s", b"in 0s", re.sub(rb"0x[0-9a-f]+", b"0x", output))
