"""What is registered for children is run in them, in its order, before the script."""

from __future__ import annotations

import multiprocessing.spawn
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from samebits._runtime.child_bootstrap import AS_A_SCRIPT, ChildBootstrap, Payload, Phase, python_code
from samebits._runtime.package import LOCATION

if TYPE_CHECKING:
    from pathlib import Path

SCRIPT = """
import multiprocessing, os, sys
from samebits._runtime.child_bootstrap import _RESULTS, CHILDREN, Payload, Phase

def work():
    print("worked", "samebits" in sys.modules, _RESULTS, flush=True)

if __name__ == "__main__":
    for phase, number in ((Phase.RECORDING, 3), (Phase.OVERLAY, 1), (Phase.CONTROL, 2), (Phase.CONTROL, 9)):
        CHILDREN.register(phase, lambda _, number=number: Payload("builtins", "dict", {"number": number}))
    for payload in (BROKEN):
        CHILDREN.register(Phase.PORTABLE, lambda _: payload)
        process = multiprocessing.get_context(sys.argv[1]).Process(target=work)
        process.start(), process.join()
        print(process.exitcode, flush=True)
"""


def run(folder: Path, broken: str, way: str = "spawn") -> subprocess.CompletedProcess[str]:
    (folder / "start.py").write_text(SCRIPT.replace("BROKEN", broken))
    command = [sys.executable, "start.py", way]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)


def test_a_child_finds_samebits_imported_where_a_payload_shows_it(tmp_path: Path):
    done = run(tmp_path, 'Payload("builtins", "dict", {}, shown=True),')

    assert done.stdout.startswith("worked True "), done.stderr


@pytest.mark.parametrize("way", ["spawn", "forkserver"])
def test_payloads_run_in_the_order_of_the_phases_and_the_first_of_each_counts(tmp_path: Path, way: str):
    done = run(tmp_path, 'Payload("builtins", "dict", {"number": 0}),', way)

    numbers = [{"number": number} for number in (1, 0, 2, 3)]
    assert (done.stdout, done.stderr) == (f"worked False {numbers}\n0\n", "")


def test_one_that_fails_is_told_or_ends_the_child_or_neither(tmp_path: Path):
    silent = 'Payload("nowhere", "f", {})'
    told = 'Payload("builtins", "int", {"none": 1}, warning="no such thing")'
    needed = 'Payload("builtins", "len", {}, needed=True)'
    quiet, spoken, failed = (run(tmp_path, f"{broken},") for broken in (silent, told, needed))

    assert (quiet.stdout.splitlines()[-1], quiet.stderr) == ("0", "")
    assert spoken.stdout.splitlines()[-1] == "0"
    assert spoken.stderr.startswith("samebits: warning: no such thing (TypeError: ")
    assert failed.stdout == "1\n"
    assert failed.stderr.splitlines()[-1].startswith("TypeError: ")


def test_a_child_that_cannot_load_samebits_fails_where_something_needed_it(tmp_path: Path):
    script = SCRIPT.replace("BROKEN", 'Payload("builtins", "dict", {}, needed=True),').replace(
        'if __name__ == "__main__":',
        'if __name__ == "__main__":\n    from samebits._runtime import child_bootstrap\n'
        '    child_bootstrap.FOLDER = "/nowhere"',
    )
    (tmp_path / "start.py").write_text(script)
    command = [sys.executable, "start.py", "spawn"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)

    assert done.stdout == "1\n"
    assert "FileNotFoundError" in done.stderr


def test_nothing_is_left_when_the_last_is_gone():
    spawn = multiprocessing.spawn
    before = spawn.get_preparation_data, list(sys.meta_path)
    children = ChildBootstrap()

    def give(_executable: Any) -> Payload:
        return Payload("builtins", "dict", {})

    children.register(Phase.CONTROL, give)
    children.register(Phase.OVERLAY, give)
    assert spawn.get_preparation_data is not before[0]
    children.unregister(Phase.CONTROL, give)
    assert spawn.get_preparation_data is not before[0]
    children.unregister(Phase.OVERLAY, give)
    children.unregister(Phase.OVERLAY, give)

    assert (spawn.get_preparation_data, list(sys.meta_path)) == before


def test_code_for_a_command_finds_samebits_where_the_parent_has_it(tmp_path: Path):
    (tmp_path / "samebits.py").write_text("raise ImportError('this is not it')\n")
    code = python_code(AS_A_SCRIPT, "print(sys.modules['samebits'].__file__, sys.path[0])\n")
    command = [sys.executable, "-S", "-c", code, LOCATION]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=100, check=False)

    assert done.stdout.startswith(f"{LOCATION}/samebits/__init__.py "), done.stderr
