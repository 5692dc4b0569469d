"""Running several seeds at a time, each in a fresh process."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from samebits.determinism.switches import holds_layout
from samebits.files import open_to_write
from samebits.hooks.layout import fixed_layout
from samebits.hooks.parent_death import ended_with_parent
from samebits.recording.launch import child_command, not_started
from samebits.recording.settings import ENVIRONMENT_NAME
from samebits.recording.supervision import CHILD_GRACE_S
from samebits.spread.request import environment_for, settings_for, target_for
from samebits.spread.store import file_digest

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence
    from pathlib import Path

    from samebits.spread.request import SpreadRequest

_POLL_S = 0.02


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
    ) -> Generator[Ended, None, None]:
        """Each run as it ends. When the caller stops listening, those in progress are ended.

        Args:
            seeds: those to run.
            go_on: asked before each start; once it says no, no further run is started.
            tell: told now and then which seeds run and how many have not begun.

        Raises:
            KeyboardInterrupt: the user ended it, and those in progress were ended.
            SamebitsError: the interpreter cannot be started; `child-start`.
        """
        waiting = list(seeds)
        with self._ended_at_exit():
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
        fixed = fixed_layout(fixed=holds_layout(self._request.control))
        words = child_command(target_for(seed, self._request))
        with fixed, open_to_write(f"{files}.out") as output, open_to_write(f"{files}.err") as errors:
            try:
                process = subprocess.Popen(
                    words,
                    env=environment,
                    stdin=subprocess.DEVNULL,  # several scripts cannot ask at the same time
                    stdout=output,
                    stderr=errors,
                    start_new_session=True,  # Ctrl-C comes here only; a run is ended with all its processes
                    preexec_fn=ended_with_parent(),  # noqa: PLW1509 - it calls the kernel and nothing else
                )
            except OSError as error:
                raise not_started(words[0], error) from None
        return _Child(seed, process, files, time.monotonic(), digest)

    @contextlib.contextmanager
    def _ended_at_exit(self) -> Iterator[None]:
        try:
            yield
        finally:
            self._end(signal.SIGTERM)
            deadline = time.monotonic() + CHILD_GRACE_S
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
