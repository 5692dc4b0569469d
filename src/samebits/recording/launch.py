"""Running a target in a fresh child process, recorded."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from samebits._runtime.address_layout import fixed_layout
from samebits._runtime.child_bootstrap import AS_A_SCRIPT, python_code
from samebits._runtime.package import LOCATION
from samebits._runtime.processes import descendants, end, ended_with_parent
from samebits.errors import SamebitsError
from samebits.recording.run_signals import DEFAULT_FIRST
from samebits.recording.settings import ENVIRONMENT_NAME, RecordingSettings
from samebits.recording.supervision import Supervision
from samebits.recording.target import check_target
from samebits.records.creation import fold

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from samebits.recording.runner import Target

# `startup_modules` is read by `runner.run_target`.
_BEFORE = f"{AS_A_SCRIPT}{DEFAULT_FIRST}sys.orig_argv[-len(sys.argv) - 1:] = sys.argv[2:]\n"
_RUN = """\
from samebits.recording.child import main
from samebits.recording.runner import enter
enter(main)
"""
BOOTSTRAP = python_code(_BEFORE, _RUN)

_OPTIONS_WITH_VALUE = frozenset("WX")
# A prompt afterwards (-i) and skipping a file's first line (-x) were meant for this program, not the script.
_OPTIONS_DROPPED = frozenset("ix")
_LONG_OPTION_WITH_VALUE = "--check-hash-based-pycs"
_POLL_S = 0.05
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
        grace_s: see `Supervision`.
        fixed_layout: whether it starts without address space randomisation, where the system allows that.
    """

    target: Target
    settings_json: str
    environment: Mapping[str, str]
    output: str = "inherit"
    stdin: int | None = None
    limit_s: float | None = None
    folder: str | None = None
    grace_s: float | None = None
    fixed_layout: bool = False


@dataclass(frozen=True, slots=True)
class Command:
    """A program to be started; the other fields are those of `Launch`.

    Args:
        argv: the program and its arguments.
        environment: all of its variables.
    """

    argv: list[str]
    environment: Mapping[str, str]
    output: str = "inherit"
    stdin: int | None = None
    limit_s: float | None = None
    folder: str | None = None
    grace_s: float | None = None
    fixed_layout: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of a child.

    Args:
        status: as the shell would show it: 128 + N after signal N.
        signal: the signal that ended it.
        timed_out: whether it was ended at its limit.
        told: the signal that told this process to end meanwhile (see `deliver`); None when there was none.
    """

    status: int
    signal: int | None
    timed_out: bool = False
    told: int | None = None


def launch(request: Launch) -> Outcome:
    """Run a target in a fresh interpreter with this one's options, and wait for it: see `launch_all`."""
    return launch_all((request,))[0]


def launch_all(requests: Sequence[Launch], apart_s: float = 0.0) -> tuple[Outcome, ...]:
    """Run targets at the same time, each in a fresh interpreter, and wait for all: see `run_commands`.

    Raises:
        SamebitsError: a script cannot be run (see `check_target`), this process knows no interpreter
            (`no-interpreter`), or the interpreter cannot be started (`child-start`).
    """
    outcomes = run_commands([_command(request) for request in requests], apart_s)
    for request in requests:
        _make_single(request)
    return outcomes


def run_command(command: Command) -> Outcome:
    """Run a program and wait for it: see `run_commands`."""
    return run_commands((command,))[0]


def run_commands(commands: Sequence[Command], apart_s: float = 0.0) -> tuple[Outcome, ...]:
    """Run programs at the same time and wait for all of them.

    `Supervision` handles signals meanwhile, with the grace of the first command. On Linux the programs are
    killed when this process ends. Once it is told to end, no more are started.

    Args:
        commands: what is run.
        apart_s: seconds from the start of one to that of the next.

    Raises:
        SamebitsError: one cannot be started; `child-start`. The others are killed, with what they started.
    """
    children: list[subprocess.Popen[bytes]] = []
    with Supervision(commands[0].grace_s) as signals:
        try:
            for command in commands:
                if children and not _waited(apart_s, signals):
                    break
                children.append(_started(command))
                signals.begin(children[-1])
            begun = time.monotonic()
            ended = [
                _wait(child, command.limit_s, begun)
                for child, command in zip(children, commands, strict=False)
            ]
        except BaseException:
            _kill(children)
            raise
        signals.finish()
    outcomes = [_outcome(status, signals.told, timed_out=timed_out) for status, timed_out in ended]
    missing = [_outcome(-(signals.told or 0), signals.told, timed_out=False)] * (
        len(commands) - len(children)
    )
    return (*outcomes, *missing)


def _waited(seconds: float, signals: Supervision) -> bool:
    """Let that much time pass; False if this process is told to end before."""
    until = time.monotonic() + seconds
    while signals.told is None and time.monotonic() < until:
        time.sleep(min(_POLL_S, seconds))
    return signals.told is None


def _kill(children: Sequence[subprocess.Popen[bytes]]) -> None:
    below = [process for child in children for process in descendants(child.pid)]
    for child in children:
        child.kill()
    for child in children:
        child.wait()
    end(below, 0)


def _started(command: Command) -> subprocess.Popen[bytes]:
    with fixed_layout(fixed=command.fixed_layout):
        try:
            return subprocess.Popen(
                command.argv,
                env=command.environment,
                cwd=command.folder,
                stdin=command.stdin,
                stdout={"stderr": 2, "nothing": subprocess.DEVNULL}.get(command.output),
                stderr=subprocess.DEVNULL if command.output == "nothing" else None,
                close_fds=False,  # for what the shell opened (`3<file`); Python's own are not inherited
                preexec_fn=ended_with_parent(),  # noqa: PLW1509 - it calls the kernel and nothing else
            )
        except OSError as error:
            raise not_started(command.argv[0], error) from None


def _outcome(status: int, told: int | None, *, timed_out: bool) -> Outcome:
    shown, number = (status, None) if status >= 0 else (128 - status, -status)
    return Outcome(shown, number, timed_out, told)


def replace_process(request: Launch) -> NoReturn:
    """Run a target in place of this program, in the same process, as `exec` in a shell does.

    Its number, its parent, its signals, its limits and its jobs are then those of bare Python.

    Raises:
        SamebitsError: as `launch`.
    """
    command, environment = _prepared(request)
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    try:
        with fixed_layout(fixed=request.fixed_layout):
            os.execve(command[0], command, environment)  # noqa: S606 - there is no shell to be had
    except OSError as error:
        raise not_started(command[0], error) from None


def deliver(outcome: Outcome) -> None:
    """Raise the signal that told this process to end while a child ran.

    Raises:
        KeyboardInterrupt: where the handler of the signal raises it.
    """
    if outcome.told is not None:
        signal.raise_signal(outcome.told)


def _command(request: Launch) -> Command:
    argv, environment = _prepared(request)
    return Command(
        argv,
        environment,
        output=request.output,
        stdin=request.stdin,
        limit_s=request.limit_s,
        folder=request.folder,
        grace_s=request.grace_s,
        fixed_layout=request.fixed_layout,
    )


def _prepared(request: Launch) -> tuple[list[str], dict[str, str]]:
    """Return the command line of the child and its environment."""
    if request.folder is None:  # else the child looks from there
        check_target(request.target.script)
    environment = {**os.environ, **request.environment, ENVIRONMENT_NAME: request.settings_json}
    if request.folder is not None:
        environment["PWD"] = request.folder  # as a shell that changes its folder does
    return child_command(request.target), environment


def not_started(program: str, error: OSError) -> SamebitsError:
    """Return the error that says that the system did not start a program.

    Args:
        program: its path.
        error: of the system.
    """
    reason = f"{error.strerror} (errno {error.errno})"
    message = f"{program} could not be started: {reason}; {_advice(error)}"
    return SamebitsError(message, slug="child-start")


def _advice(error: OSError) -> str:
    """Advise what to do about an interpreter that cannot be started."""
    if error.errno in (errno.EAGAIN, errno.ENOMEM):
        return "expected room for one more process: see the limits of this shell (ulimit -a) and free memory"
    if error.errno == errno.E2BIG:
        return "expected shorter arguments, or fewer environment variables"
    return "expected sys.executable to be a Python interpreter that this user may execute on this machine"


def _make_single(request: Launch) -> None:
    """Bring the log of the run into its record; not in the child, whose threads may still be running."""
    try:
        record = RecordingSettings.from_json(request.settings_json).record
    except ValueError:  # it does not record
        return
    with contextlib.suppress(SamebitsError):  # no room: readers bring it into a copy
        fold(os.path.join(request.folder or "", record))


def _wait(child: subprocess.Popen[bytes], limit_s: float | None, begun: float) -> tuple[int, bool]:
    """Wait for a child; return its status, and whether it had to be ended."""
    left = None if limit_s is None else max(0.0, begun + limit_s - time.monotonic())
    try:
        return child.wait(left), False
    except subprocess.TimeoutExpired:
        below = descendants(child.pid)
        child.terminate()
    try:
        status = child.wait(_GRACE_S)
    except subprocess.TimeoutExpired:
        below += descendants(child.pid)
        child.kill()
        status = child.wait()
    end(below, _GRACE_S)
    return status, True


def child_command(target: Target) -> list[str]:
    """Return the command line of the child.

    Raises:
        SamebitsError: this process knows no interpreter; `no-interpreter`.
    """
    if not sys.executable:
        message = "sys.executable is empty; expected the path of the Python interpreter that samebits runs in"
        raise SamebitsError(message, slug="no-interpreter")
    return command_of(target, interpreter_options(sys.orig_argv))


def command_of(target: Target, options: Sequence[str]) -> list[str]:
    """Return the command line of a process that runs a target as `child` does.

    Args:
        target: what it runs.
        options: of the interpreter.
    """
    script = [target.script] if target.script is not None else ["-m", str(target.module)]
    return [sys.executable, *options, "-c", BOOTSTRAP, LOCATION, *script, *target.arguments]


def interpreter_options(command: Sequence[str]) -> list[str]:
    """Return the interpreter's options in a command line such as `python -X dev -W error -m samebits run`.

    They are taken from what was typed and not from `sys.flags`, which also holds what came from the
    environment; the child has the same environment.
    """
    options: list[str] = []
    words = iter(command[1:])
    for word in words:
        if word == _LONG_OPTION_WITH_VALUE:
            options += [word, next(words, "")]
        elif word.startswith("--") or not word.startswith("-") or word == "-":
            break
        else:
            remaining, needs_value, ended = _short_options(word[1:])
            options += [f"-{remaining}"] if remaining else []
            options += [next(words, "")] if needs_value else []
            if ended:
                break
    return options


def _short_options(letters: str) -> tuple[str, bool, bool]:
    """Return the options of a cluster such as `Bm`, whether one takes the next word, and whether they end."""
    remaining = ""
    for index, letter in enumerate(letters):
        if letter in "cm":
            return remaining, False, True
        if letter in _OPTIONS_WITH_VALUE:
            return remaining + letters[index:], index == len(letters) - 1, False
        remaining += "" if letter in _OPTIONS_DROPPED else letter
    return remaining, False, False
