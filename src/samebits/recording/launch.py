"""Running a target in a fresh child process, recorded."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import samebits
from samebits.errors import SamebitsError
from samebits.recording.script_file import check_target
from samebits.recording.settings import ENVIRONMENT_NAME

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import FrameType

    from samebits.recording.runner import Target

# `-c` and not `-m`: `-m` searches the working directory before anything else, and would import a
# `samebits.py` or `types.py` that lies there. samebits is taken from where this process has it; `sys.path`
# stays the user's. `startup_modules` is read by `runner.run_target`.
BOOTSTRAP = """\
import sys
startup_modules = frozenset(sys.modules)
if not getattr(sys.flags, "safe_path", sys.flags.isolated):
    del sys.path[0]
sys.orig_argv[-len(sys.argv) - 1:] = sys.argv[2:]
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
spec = PathFinder.find_spec("samebits", [sys.argv[1]])
sys.modules["samebits"] = module_from_spec(spec)
spec.loader.exec_module(sys.modules["samebits"])
from samebits.recording.child import main
from samebits.recording.runner import enter
enter(main)
"""

_FORWARDED = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
_OPTIONS_WITH_VALUE = frozenset("WX")
# A prompt afterwards (-i) and skipping a file's first line (-x) were meant for this program, not the script.
_OPTIONS_DROPPED = frozenset("ix")
_LONG_OPTION_WITH_VALUE = "--check-hash-based-pycs"
_SAME_KEYPRESS_SECONDS = 0.5
_GRACE_S = 5.0  # for a run that is ended at its limit, to close its record


@dataclass(frozen=True, slots=True)
class Launch:
    """A run to be started.

    Args:
        target: what is run.
        settings_json: `RecordingSettings.to_json()`.
        environment: variables beside the user's own.
        output: `inherit`, `stderr` to send the script's standard output to ours of errors, or `nothing` to
            send both of its streams nowhere.
        stdin: descriptor of its standard input; None for this program's own.
        limit_s: seconds after which it is ended, first by SIGTERM; None for no limit.
        folder: its working folder; None for this program's own.
    """

    target: Target
    settings_json: str
    environment: Mapping[str, str]
    output: str = "inherit"
    stdin: int | None = None
    limit_s: float | None = None
    folder: str | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """How the child ended.

    Args:
        status: as the shell would show it: 128 + N after signal N.
        signal: the signal that ended it.
        timed_out: whether it was ended at its limit.
    """

    status: int
    signal: int | None
    timed_out: bool = False


def launch(request: Launch) -> Outcome:
    """Run a target in a fresh interpreter with this one's options, and wait for it.

    While it runs, SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 are passed on to it. Ctrl-C reaches it from the
    terminal; a second one kills it.

    Raises:
        SamebitsError: the script cannot be run (see `check_target`), or this process knows no interpreter
            (`no-interpreter`).
    """
    if request.folder is None:  # else the child looks from there
        check_target(request.target.script)
    environment = {**os.environ, **request.environment, ENVIRONMENT_NAME: request.settings_json}
    if request.folder is not None:
        environment["PWD"] = request.folder  # as a shell that changes its folder does
    with _PassSignalsOn() as signals:
        child = subprocess.Popen(
            child_command(request.target),
            env=environment,
            cwd=request.folder,
            stdin=request.stdin,
            stdout={"stderr": 2, "nothing": subprocess.DEVNULL}.get(request.output),
            stderr=subprocess.DEVNULL if request.output == "nothing" else None,
            close_fds=False,  # for what the shell opened (`3<file`); Python's own are not inherited anyway
        )
        signals.begin(child)
        status, timed_out = _wait(child, request.limit_s)
    return Outcome(status, None, timed_out) if status >= 0 else Outcome(128 - status, -status, timed_out)


def _wait(child: subprocess.Popen[bytes], limit_s: float | None) -> tuple[int, bool]:
    """The status of the child, and whether it had to be ended."""
    try:
        return child.wait(limit_s), False
    except subprocess.TimeoutExpired:
        child.terminate()
    try:
        return child.wait(_GRACE_S), True
    except subprocess.TimeoutExpired:
        child.kill()
    return child.wait(), True


def child_command(target: Target) -> list[str]:
    """The command line of the child.

    Raises:
        SamebitsError: this process knows no interpreter; `no-interpreter`.
    """
    if not sys.executable:
        message = "sys.executable is empty; expected the path of the Python interpreter that samebits runs in"
        raise SamebitsError(message, slug="no-interpreter")
    location = str(Path(samebits.__file__).absolute().parent.parent)
    what = [target.script] if target.script is not None else ["-m", str(target.module)]
    options = interpreter_options(sys.orig_argv)
    return [sys.executable, *options, "-c", BOOTSTRAP, location, *what, *target.arguments]


def interpreter_options(command: Sequence[str]) -> list[str]:
    """The options of the interpreter in a command line such as `python -X dev -W error -m samebits run`.

    Taken from what was typed and not from `sys.flags`, which also holds what came from the environment; the
    child has the same environment.
    """
    options: list[str] = []
    words = iter(command[1:])
    for word in words:
        if word == _LONG_OPTION_WITH_VALUE:
            options += [word, next(words, "")]
        elif word.startswith("--") or not word.startswith("-") or word == "-":
            break
        else:
            kept, needs_value, ended = _short_options(word[1:])
            options += [f"-{kept}"] if kept else []
            options += [next(words, "")] if needs_value else []
            if ended:
                break
    return options


def _short_options(letters: str) -> tuple[str, bool, bool]:
    """What is kept of a cluster such as `Bm`; whether its value is the next word; whether options end."""
    kept = ""
    for index, letter in enumerate(letters):
        if letter in "cm":
            return kept, False, True
        if letter in _OPTIONS_WITH_VALUE:
            return kept + letters[index:], index == len(letters) - 1, False
        kept += "" if letter in _OPTIONS_DROPPED else letter
    return kept, False, False


class _PassSignalsOn:
    """While the child runs, signals to this process are meant for it."""

    def __init__(self) -> None:
        self._child: subprocess.Popen[bytes] | None = None
        self._early: list[int] = []
        self._first_interrupt = 0.0
        self._saved: dict[int, Any] = {}

    def __enter__(self) -> _PassSignalsOn:  # noqa: PYI034 - Self needs Python 3.11
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, *_FORWARDED):
                # Ignored signals (nohup, a background job) stay ignored; the child inherits that, as bare
                # Python does. Handlers are not inherited, so the child starts with the defaults.
                if signal.getsignal(number) not in (signal.SIG_IGN, None):
                    self._saved[number] = signal.signal(number, self._receive)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._saved.items():
            signal.signal(number, handler)

    def begin(self, child: subprocess.Popen[bytes]) -> None:
        """Pass on to this child what came and what will come."""
        self._child = child
        for number in self._early:
            child.send_signal(number)

    def _receive(self, number: int, _frame: FrameType | None) -> None:
        if number == signal.SIGINT:
            self._interrupt()
        else:
            self._pass_on(number)

    def _interrupt(self) -> None:
        now = time.monotonic()
        if not self._first_interrupt:
            self._first_interrupt = now
            if not _in_foreground():  # else the terminal has sent it to the child too
                self._pass_on(signal.SIGINT)
        elif now - self._first_interrupt > _SAME_KEYPRESS_SECONDS and self._child is not None:
            self._child.kill()

    def _pass_on(self, number: int) -> None:
        if self._child is None:
            self._early.append(number)
        else:
            self._child.send_signal(number)


def _in_foreground() -> bool:
    """Whether this process belongs to the group that a terminal sends Ctrl-C to."""
    try:
        terminal = os.open(os.ctermid(), os.O_RDONLY | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)
