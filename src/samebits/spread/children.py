"""Running several seeds at a time, each in a fresh process."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from samebits.recording.launch import child_command
from samebits.recording.settings import ENVIRONMENT_NAME
from samebits.spread.request import environment_for, settings_for, target_for
from samebits.spread.store import file_digest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path
    from types import FrameType

    from samebits.spread.request import SpreadRequest

_POLL_S = 0.02
_GRACE_S = 5.0
_ENDING = (signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True, slots=True)
class Ended:
    """A run that ended.

    Args:
        seed: of the run.
        status: as the shell would show it: 128 + N after signal N.
        seconds: its duration.
        files: path of its files, without a suffix: `.sbr`, `.values.jsonl`, `.out`, `.err`.
        script_digest: SHA-256 of the script when the run began; empty for a module or a folder.
    """

    seed: int
    status: int
    seconds: float
    files: Path
    script_digest: str = ""


@dataclass(slots=True)
class _Child:
    """A run in progress."""

    seed: int
    process: subprocess.Popen[bytes]
    files: Path
    started: float
    script_digest: str


class SeedRunner:
    """Runs seeds, a number of them at a time; what they print goes to files.

    Args:
        request: what is run.
        folder: where the files of the runs go.
    """

    def __init__(self, request: SpreadRequest, folder: Path) -> None:
        self._request = request
        self._folder = folder
        self._children: list[_Child] = []

    def run(
        self, seeds: Sequence[int], *, go_on: Callable[[], bool], tell: Callable[[list[int], int], None]
    ) -> Iterator[Ended]:
        """Each run as it ends. When the caller stops listening, those in progress are ended.

        Args:
            seeds: those to run.
            go_on: asked before each start; once it says no, no further run is started.
            tell: told now and then which seeds run and how many have not begun.

        Raises:
            KeyboardInterrupt: Ctrl-C, SIGTERM or SIGHUP; those in progress were ended.
        """
        waiting = list(seeds)
        with _interrupted_by_signals(), self._ended_at_exit():
            while waiting or self._children:
                while waiting and len(self._children) < self._request.jobs and go_on():
                    self._children.append(self._start(waiting.pop(0)))
                if not self._children:
                    return
                yield from self._collect()
                tell([child.seed for child in self._children], len(waiting))
                time.sleep(_POLL_S)

    def _collect(self) -> list[Ended]:
        ended = []
        for child in list(self._children):
            status = child.process.poll()
            if status is None:
                continue
            self._children.remove(child)
            seconds = time.monotonic() - child.started
            shown = status if status >= 0 else 128 - status
            ended.append(Ended(child.seed, shown, seconds, child.files, child.script_digest))
        return ended

    def _start(self, seed: int) -> _Child:
        files = self._folder / f"seed-{seed}"
        script = self._request.target.script
        digest = "" if script is None else file_digest(script)
        settings = settings_for(seed, self._request, files)
        environment = {**os.environ, **environment_for(self._request), ENVIRONMENT_NAME: settings.to_json()}
        with open(f"{files}.out", "wb") as output, open(f"{files}.err", "wb") as errors:
            process = subprocess.Popen(
                child_command(target_for(seed, self._request)),
                env=environment,
                stdin=subprocess.DEVNULL,  # several scripts cannot ask at the same time
                stdout=output,
                stderr=errors,
                start_new_session=True,  # Ctrl-C comes here only, and a run is ended with all its processes
            )
        return _Child(seed, process, files, time.monotonic(), digest)

    @contextlib.contextmanager
    def _ended_at_exit(self) -> Iterator[None]:
        try:
            yield
        finally:
            self._end(signal.SIGTERM)
            deadline = time.monotonic() + _GRACE_S
            while any(child.process.poll() is None for child in self._children):
                if time.monotonic() > deadline:
                    self._end(signal.SIGKILL)
                time.sleep(_POLL_S)
            self._children.clear()

    def _end(self, number: int) -> None:
        for child in self._children:
            if child.process.poll() is None:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(child.process.pid, number)


@contextlib.contextmanager
def _interrupted_by_signals() -> Iterator[None]:
    """SIGTERM and SIGHUP end this process as Ctrl-C does, so that no run goes on without it."""
    saved: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        ending = [number for number in _ENDING if signal.getsignal(number) == signal.SIG_DFL]
        saved = {number: signal.signal(number, _interrupt) for number in ending}
    try:
        yield
    finally:
        for name, handler in saved.items():
            signal.signal(name, handler)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
