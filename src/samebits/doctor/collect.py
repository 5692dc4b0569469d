"""Collects the surroundings: torch is imported in a fresh child, never here."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from samebits.doctor.place import look_at_place
from samebits.doctor.surroundings import (
    DigestCheck,
    Surroundings,
    cpus_from,
    interpreter_from,
    switch_from,
    torch_from,
)
from samebits.errors import SamebitsError
from samebits.hooks.child_bootstrap import AS_A_SCRIPT, python_code
from samebits.hooks.parent_death import ended_with_parent
from samebits.package import LOCATION
from samebits.recording.launch import interpreter_options

if TYPE_CHECKING:
    from collections.abc import Sequence

_LOOK = """\
from samebits.doctor.look import main
main(sys.argv[2:], startup_modules)
"""
_SECONDS = 180.0
_LONGEST_REASON = 200


def collect(folder: Path, imports: frozenset[str] | None = None) -> Surroundings:
    """Look around in a fresh process, with the variables and the interpreter options of this one.

    Args:
        folder: of the script; its modules are found first there.
        imports: top-level names that the script imports; None when no script is given.

    Raises:
        SamebitsError: no interpreter is known (`no-interpreter`), or not even Python itself can be looked at
            in a fresh process (`doctor-child`).
    """
    facts, failure = _ask(folder, with_torch=True)
    if facts is None:
        facts, second = _ask(folder, with_torch=False)
        if facts is None:
            message = (
                f"a fresh Python could not tell about itself: {second}; expected `python -c pass` to work"
            )
            raise SamebitsError(message, slug="doctor-child")
        facts["torch"]["error"] = failure
    return Surroundings(
        interpreter=interpreter_from(facts["interpreter"]),
        cpus=cpus_from(facts["cpus"]),
        torch=torch_from(facts["torch"]),
        digest=None if facts["digest"] is None else DigestCheck(**facts["digest"]),
        place=look_at_place(Path.cwd(), folder),
        variables=facts["variables"],
        packages=facts["packages"],
        imports=imports,
        switches=tuple(map(switch_from, facts["switches"])),
        fixable_layout=facts["fixable_layout"],
    )


def _ask(folder: Path, *, with_torch: bool) -> tuple[dict[str, Any] | None, str]:
    """What a child answers; without an answer, why there is none."""
    with tempfile.TemporaryFile() as answer, tempfile.TemporaryFile() as said:
        number = answer.fileno()
        command = [*_interpreter(), "-c", python_code(AS_A_SCRIPT, _LOOK), LOCATION, str(number), str(folder)]
        command.append("1" if with_torch else "0")
        try:
            # Whatever a package prints while it is imported must not mix with our report.
            status = subprocess.run(
                command,
                check=False,
                timeout=_SECONDS,
                pass_fds=(number,),
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                preexec_fn=ended_with_parent(),
            ).returncode
        except subprocess.TimeoutExpired:
            return None, f"it took more than {_SECONDS:.0f} seconds"
        text = _all_of(answer)
        if text:
            facts: dict[str, Any] = json.loads(text)
            return facts, ""
        return None, _describe_end(status, _all_of(said))


def _all_of(file: IO[bytes]) -> bytes:
    file.seek(0)
    return file.read()


def _describe_end(status: int, said: bytes) -> str:
    lines = said.decode(errors="replace").strip().splitlines() or [""]
    if status < 0:
        return f"Python was ended by {_signal_name(-status)}"
    return f"Python ended with status {status} {lines[-1]}".strip()[:_LONGEST_REASON]


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _interpreter() -> Sequence[str]:
    if not sys.executable:
        message = "sys.executable is empty; expected the path of the Python interpreter that samebits runs in"
        raise SamebitsError(message, slug="no-interpreter")
    return [sys.executable, *interpreter_options(sys.orig_argv)]
