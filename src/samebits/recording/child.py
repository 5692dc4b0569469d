"""What the process does in which a recorded script runs; `launch` starts it."""

from __future__ import annotations

import _thread
import atexit
import contextlib
import os
import sys
import time
from typing import TYPE_CHECKING, Any

from samebits.errors import EXIT_NOT_JUDGED, SamebitsError
from samebits.hooks.standing import standing
from samebits.portable.run import PortableRun
from samebits.recording.clock import StepClock
from samebits.recording.controlled import ControlledRun
from samebits.recording.overlay import Overlay
from samebits.recording.runner import RunResult, Target, last_line, run_target
from samebits.recording.session import Ending, RecordingSession
from samebits.recording.settings import ENVIRONMENT_NAME, RecordingSettings

if TYPE_CHECKING:
    from collections.abc import Callable

_GRACE_S = 5.0


def target_of(arguments: list[str]) -> Target:
    """What the command line of a child asks to run."""
    if arguments[0] == "-m":
        return Target(script=None, module=arguments[1], arguments=tuple(arguments[2:]))
    return Target(script=arguments[0], module=None, arguments=tuple(arguments[1:]))


def main(arguments: list[str]) -> int:
    """Record a script; give its exit status.

    Args:
        arguments: `[script, *arguments]` or `["-m", module, *arguments]`.

    Raises:
        SamebitsError: nothing to run, the record cannot be written, or drift was to end the run.
    """
    settings = RecordingSettings.from_json(os.environ.pop(ENVIRONMENT_NAME))
    if settings.level == "op" or settings.replay:
        # Compiled code has no ops to look at. It is the only variable that a script can see.
        os.environ["TORCHDYNAMO_DISABLE"] = "1"
    timed = settings.level == "clock"
    session = StepClock(settings) if timed else RecordingSession(settings, tuple(arguments))
    controlled, portable = _begin(session, settings)
    overlay = Overlay(settings.overlay)
    overlay.install()
    results: list[RunResult] = []
    closed: list[bool] = []
    process = os.getpid()

    def close() -> None:
        if os.getpid() == process and not closed:  # not in a child that the script forked
            closed.append(True)
            facts = {**(controlled.facts() if controlled else {}), **_portable_facts(portable)}
            session.finish(_ending(results), facts)
            if portable is not None:
                portable.stop()
            if controlled is not None:
                controlled.stop()

    # First in, last out: threads that outlive the script and its own exit handlers are recorded too.
    atexit.register(close)
    _close_before_exit(close, closed, results)
    try:
        results.append(run_target(target_of(arguments), overlay))
    except SamebitsError as error:
        results.append(RunResult(exit_status=EXIT_NOT_JUDGED, failure=str(error)))
        raise
    stopped = results[0].stopped
    refusal = controlled.conclude(results[0]) if controlled else None
    if refusal is not None:
        results[0] = RunResult(EXIT_NOT_JUDGED, str(refusal))
    if stopped:
        close()
        _thread.start_new_thread(_end_after_grace, (results[0].exit_status,))
    if refusal is not None:
        raise refusal
    return results[0].exit_status


def _begin(
    session: RecordingSession | StepClock, settings: RecordingSettings
) -> tuple[ControlledRun | None, PortableRun | None]:
    """Put recording and control in place, in the order in which they are to be called."""
    session.start()
    control = settings.control
    if settings.pins:
        from samebits.determinism.pins import combine

        control = combine(settings.pins, control, os.environ).control
    controlled = ControlledRun(control, session.recorder) if control else None
    if controlled is not None:
        controlled.start()  # after the session: of two watchers of an import the later one is called first
    if isinstance(session, RecordingSession):
        session.watch_draws()  # after what pins replaced, so that what they give is what is recorded
    portable = PortableRun() if control is not None and control.portable else None
    if portable is not None:
        portable.start()  # last, so that the recorder's modes are entered later and see the script's ops
    return controlled, portable


def _portable_facts(portable: PortableRun | None) -> dict[str, Any]:
    return {} if portable is None else {"portable_run": portable.facts()}


def _close_before_exit(close: Callable[[], None], closed: list[bool], results: list[RunResult]) -> None:
    """Have `os._exit`, by which some scripts end, close the record first.

    Args:
        close: closes it.
        closed: not empty once it is closed, or is being closed.
        results: how the script ended, if it did; what it does now is added.
    """
    process, end = os.getpid(), os._exit

    def exit_now(_self: Any, /, *args: Any, **named: Any) -> None:
        status = named.get("status", args[0] if args else None)
        if isinstance(status, int) and os.getpid() == process and not closed:
            # Closing may wait for what this thread holds.
            _thread.start_new_thread(_end_after_grace, (status,))
            failure = results[0].failure if results else _handled_error(status)
            results[:] = [RunResult(status & 0xFF, failure)]
            close()
        end(*args, **named)

    os._exit = standing(os._exit, exit_now)


def _handled_error(status: int) -> str:
    """The error for which a script ends with a status other than 0; empty if there is none."""
    error = sys.exc_info()[1] or getattr(sys, "last_value", None)
    return "" if not status or error is None or isinstance(error, SystemExit) else last_line(error)


def _end_after_grace(status: int) -> None:
    """End a stopped script whose threads or processes do not know that it was stopped."""
    time.sleep(_GRACE_S)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    os._exit(status)


def _ending(results: list[RunResult]) -> Ending:
    if not results:
        return Ending("failed", failure="the script ended the interpreter")
    result = results[0]
    status = "stopped" if result.stopped else "failed" if result.failure else "finished"
    return Ending(status, result.exit_status, result.failure)
