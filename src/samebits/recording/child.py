"""The main program of a process in which a recorded script runs; `launch` starts it."""

from __future__ import annotations

import atexit
import os
import sys
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from samebits._runtime.builtin_proxies import proxy_of
from samebits._runtime.frames import PROGRAM
from samebits._runtime.patching import PATCHED, Patches
from samebits.errors import EXIT_NOT_JUDGED, SamebitsError, pointer
from samebits.portable.run import PortableRun
from samebits.recording._controlled import ControlledRun
from samebits.recording._leaving import end_when_stuck, leave
from samebits.recording._overlay import Overlay
from samebits.recording._steps import StepClock
from samebits.recording.children import ChildRecords, forget, has_trained, remove_records
from samebits.recording.closing import ErrorLines, RecordCloser
from samebits.recording.naming import children_folder
from samebits.recording.run_signals import RunSignals
from samebits.recording.runner import RunResult, Target, last_line, run_target
from samebits.recording.session import Ending, RecordingSession
from samebits.recording.settings import ENVIRONMENT_NAME, RecordingSettings
from samebits.recording.target import program_folders
from samebits.records.kinds import Level

if TYPE_CHECKING:
    from collections.abc import Callable


def target_of(arguments: list[str]) -> Target:
    """Return what the command line of a child asks to run."""
    if arguments[0] == "-m":
        return Target(script=None, module=arguments[1], arguments=tuple(arguments[2:]))
    return Target(script=arguments[0], module=None, arguments=tuple(arguments[1:]))


def main(arguments: list[str]) -> int:
    """Record a script and return its exit status.

    Args:
        arguments: `[script, *arguments]` or `["-m", module, *arguments]`.

    Raises:
        SamebitsError: nothing to run, the record cannot be written, or drift was to end the run.
    """
    settings = RecordingSettings.from_json(os.environ.pop(ENVIRONMENT_NAME))
    if settings.level == Level.OP or settings.replay:
        # Compiled code has no ops to look at. It is the only variable that a script can see.
        os.environ["TORCHDYNAMO_DISABLE"] = "1"
    target = target_of(arguments)
    PROGRAM.folders = program_folders(target)
    timed = settings.level == Level.CLOCK
    session = StepClock(settings) if timed else RecordingSession(settings, tuple(arguments))
    lines = ErrorLines()
    closer = RecordCloser(settings.record, settings.shown_as, lines) if settings.shown_as else None
    signals = RunSignals()
    run = _Run(session, *_begin(session, settings, lines.say), lines, closer, signals)
    if isinstance(session, RecordingSession) and not settings.replay:
        run.record_children(settings, session.note_unrecorded)
    overlay = Overlay(settings.overlay)
    overlay.install()
    # First in, last out: threads that outlive the script and its own exit handlers are recorded too.
    atexit.register(signals.deliver)  # after it
    atexit.register(run.close)
    run.close_before_exit()
    try:
        run.results.append(run_target(target, overlay, signals))
    except SamebitsError as error:
        run.results.append(RunResult(exit_status=EXIT_NOT_JUDGED, failure=str(error)))
        raise
    run.conclude()
    return run.results[0].exit_status


class _Run:
    """The end of a run, in whichever way it comes.

    Args:
        session: records it.
        controlled: its control, if any.
        portable: its portable mode, if it is in it.
        lines: where samebits says things.
        closer: closes the record and describes it; None where a parent does that.
        signals: kept back while the record is closed.

    Attributes:
        results: how the script ended; empty before it has.
    """

    def __init__(
        self,
        session: RecordingSession | StepClock,
        controlled: ControlledRun | None,
        portable: PortableRun | None,
        lines: ErrorLines,
        closer: RecordCloser | None,
        signals: RunSignals,
    ) -> None:
        self.results: list[RunResult] = []
        self._session = session
        self._controlled = controlled
        self._portable = portable
        self._lines = lines
        self._closer = closer
        self._signals = signals
        self._children: ChildRecords | None = None
        self._process = os.getpid()
        self._exit: Callable[[int], None] = os._exit
        self._lock = threading.RLock()  # a thread may end the run while the script ends by itself
        self._closed = False
        session.steps.end_by(self.stop)

    def record_children(self, settings: RecordingSettings, unrecorded: Callable[[str], None]) -> None:
        """Have the processes that the script starts recorded too; arguments as of `ChildRecords`."""
        if not settings.child:
            remove_records(children_folder(settings.record))  # of another run of that name
        own = replace(settings, record=os.path.abspath(settings.record))
        self._children = ChildRecords(own, unrecorded)
        self._children.install()

    def close(self) -> None:
        """Close the record, once, and not in a process that the script forked."""
        if os.getpid() != self._process:
            return
        self._signals.hold()
        with self._lock:
            if self._closed:
                return
            self._closed = True
            PATCHED.process_ends()
            controlled, portable = self._controlled, self._portable
            facts = {} if controlled is None else controlled.facts()
            if portable is not None:
                facts["portable_run"] = portable.facts()
            self._session.finish(_ending(self.results), facts, self._signals, single=False)
            if self._session.broken and self._closer is None:  # else it says so
                self._lines.say(self._session.broken)
            for active in (portable, controlled):
                if active is not None:
                    active.stop()
            if self._children is not None:
                self._children.remove()
            session = self._session
            if isinstance(session, RecordingSession) and session.settings.child and not has_trained(session):
                forget(session)
            if self._closer is not None:
                self._closer.close(session.broken)

    def conclude(self) -> None:
        """Tell the user what control has to report, once the script has ended.

        Raises:
            SamebitsError: drift was to end the run.
        """
        refusal = self._controlled.conclude(self.results[0]) if self._controlled else None
        if refusal is not None:
            self.results[0] = RunResult(EXIT_NOT_JUDGED, str(refusal))
            raise refusal

    def stop(self) -> None:
        """End the run here and now, because its limit is reached; does not return."""
        if os.getpid() != self._process:
            return
        self._signals.hold()
        with self._lock:
            end_when_stuck(0, self._exit)  # closing may wait for what this thread holds
            self.results[:] = [RunResult(0, stopped=True)]
            try:
                self.conclude()
            except SamebitsError as error:
                self._lines.say(f"{error}\n{pointer(error.slug)}")
            self.close()
            atexit.unregister(self._signals.deliver)  # not before the script's processes have ended
            leave(self.results[0].exit_status, self._end)

    def _end(self, status: int) -> None:
        self._signals.deliver()
        self._exit(status)

    def close_before_exit(self) -> None:
        """Have `os._exit`, with which some scripts end, close the record first."""
        end = self._exit

        def exit_now(_self: Any, /, *args: Any, **named: Any) -> None:
            status = named.get("status", args[0] if args else None)
            if isinstance(status, int) and os.getpid() == self._process and not self._closed:
                self._signals.hold()
                end_when_stuck(status, end)
                failure = self.results[0].failure if self.results else _handled_error(status)
                self.results[:] = [RunResult(status & 0xFF, failure)]
                self.close()
                self._signals.deliver()
            end(*args, **named)

        Patches().set(os, "_exit", proxy_of(os._exit, exit_now))


def _begin(
    session: RecordingSession | StepClock, settings: RecordingSettings, say: Callable[[str], None]
) -> tuple[ControlledRun | None, PortableRun | None]:
    """Start recording, control and portable mode, in the order in which they are to be called."""
    session.start()
    control = settings.control
    if settings.interventions:
        from samebits.interventions import combine

        control = combine(settings.interventions, control, os.environ).control
    controlled = ControlledRun(control, session.steps, say) if control else None
    if controlled is not None:
        controlled.start()  # after the session: of two watchers of an import the later one is called first
    if isinstance(session, RecordingSession):
        session.watch_draws()  # after what interventions replaced, so that what they give is what is recorded
    portable = PortableRun() if control is not None and control.portable else None
    if portable is not None:
        portable.start()  # last, so that the recorder's modes are entered later and see the script's ops
    return controlled, portable


def _handled_error(status: int) -> str:
    """Return the error for which a script ends with a status other than 0; empty if there is none."""
    error = sys.exc_info()[1] or getattr(sys, "last_value", None)
    return "" if not status or error is None or isinstance(error, SystemExit) else last_line(error)


def _ending(results: list[RunResult]) -> Ending:
    if not results:
        return Ending("failed", failure="the script ended the interpreter")
    result = results[0]
    status = "stopped" if result.stopped else "failed" if result.failure else "finished"
    return Ending(status, result.exit_status, result.failure)
