"""A question to a fresh Python process, where torch is imported as a script would import it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
from typing import IO, TYPE_CHECKING, Any

from samebits._runtime.child_bootstrap import AS_A_SCRIPT, python_code
from samebits._runtime.package import LOCATION
from samebits._runtime.processes import ended_with_parent
from samebits.errors import SamebitsError
from samebits.recording.launch import interpreter_options

if TYPE_CHECKING:
    from collections.abc import Sequence

_SECONDS = 180.0
_LONGEST_REASON = 200


def ask_fresh_process(code: str, arguments: Sequence[str]) -> tuple[dict[str, Any] | None, str]:
    """Run code in a fresh process, with the variables and interpreter options of this one.

    Args:
        code: Python source. `sys.argv[2]` is the number of an open file for its answer, a JSON object;
            `startup_modules` are the modules that were imported before samebits.
        arguments: of the code, from `sys.argv[3]` on.

    Returns:
        The answer and an empty text, or None and the reason why there is none.

    Raises:
        SamebitsError: no interpreter is known (`no-interpreter`).
    """
    with tempfile.TemporaryFile() as answer, tempfile.TemporaryFile() as printed:
        number = answer.fileno()
        source = python_code(AS_A_SCRIPT, code)
        command = [*_interpreter(), "-c", source, LOCATION, str(number), *arguments]
        try:
            # Whatever a package prints while it is imported must not mix with our report.
            status = subprocess.run(
                command,
                check=False,
                timeout=_SECONDS,
                pass_fds=(number,),
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=printed,
                preexec_fn=ended_with_parent(),
            ).returncode
        except subprocess.TimeoutExpired:
            return None, f"it took more than {_SECONDS:.0f} seconds"
        text = _all_of(answer)
        if text:
            facts: dict[str, Any] = json.loads(text)
            return facts, ""
        return None, _describe_end(status, _all_of(printed))


def _all_of(file: IO[bytes]) -> bytes:
    file.seek(0)
    return file.read()


def _describe_end(status: int, printed: bytes) -> str:
    lines = printed.decode(errors="replace").strip().splitlines() or [""]
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
