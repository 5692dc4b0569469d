"""Recording of processes that the script starts and that train: each gets its own record beside the script's.

Python programs that are started by `subprocess` or `os.system` run as the script itself does (`child`);
processes of `multiprocessing` and of joblib's loky begin to record in `_bootstrap`, forked or spawned. A
record is kept where a step or a backward pass was made. Workers of DataLoaders, which train nothing, are left
alone. A record is named after the target and numbered in the order of starting, so that the children of two
runs can be paired.
"""

from __future__ import annotations

import functools
import os
import re
import shlex
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from samebits._runtime.builtin_proxies import leave_no_line, proxy_of
from samebits._runtime.child_bootstrap import CHILDREN, Payload, Phase
from samebits._runtime.frames import calling_frame, ignored
from samebits._runtime.imports import PostImport, own_package
from samebits._runtime.patching import PATCHED, Patches
from samebits.recording._child_commands import may_train, python_program, split_command, with_variable
from samebits.recording.launch import command_of
from samebits.recording.naming import CHILDREN_SUFFIX, SUFFIX, children_folder
from samebits.recording.run_signals import RunSignals
from samebits.recording.settings import ENVIRONMENT_NAME, RecordingSettings
from samebits.rng.active import PROCESS, thread_name

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path
    from types import ModuleType

    from samebits.recording.session import RecordingSession
    from samebits.switches.switch import Control

_POOLS = (
    "multiprocessing.pool",
    "concurrent.futures.process",
    "joblib.externals.loky.process_executor",
    "loky.process_executor",
)
_SERVICES = ("torch.", "multiprocessing.", "concurrent.", "joblib.")
_SPAWNED_BY_TORCH = "torch.multiprocessing.spawn"


def remove_records(folder: Path) -> None:
    """Remove the records of children that a folder holds, and what is empty then."""
    with suppress(OSError):
        for path in list(folder.iterdir()):
            if path.suffix == CHILDREN_SUFFIX:
                remove_records(path)
            elif path.name.endswith((SUFFIX, f"{SUFFIX}-log")):
                path.unlink()
        folder.rmdir()


class ChildRecords:
    """Records the children of this process.

    Args:
        settings: how this process is recorded.
        unrecorded: told of commands that may train and cannot be recorded.
    """

    def __init__(
        self, settings: RecordingSettings, unrecorded: Callable[[str], None] = lambda _: None
    ) -> None:
        self._settings = settings
        self._unrecorded = unrecorded
        self._folder = children_folder(settings.record)
        self._counts: Counter[str] = Counter()
        self._patches = Patches()
        self._imports = PostImport()

    def install(self) -> None:
        """Record the children that are started from now on."""
        self._imports.install()
        self._imports.on_import("multiprocessing.process", self._patch_processes)
        CHILDREN.register(Phase.RECORDING, self._payload)
        if os.name == "posix":
            self._imports.on_import("subprocess", self._patch_popen)
            self._patch_system()
            self._patch_forks()

    def remove(self) -> None:
        """Put everything back."""
        CHILDREN.unregister(Phase.RECORDING, self._payload)
        self._imports.remove()
        self._patches.restore()

    def _child_settings(self, name: str) -> RecordingSettings:
        own = self._settings
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        reference = str(children_folder(own.reference) / f"{name}{SUFFIX}") if own.reference else ""
        record = str(self._folder / f"{name}{SUFFIX}")
        return replace(
            own, record=record, reference=reference if os.path.isfile(reference) else "", child=True,
            control=None, progress=False, overwrite=True, ranks=None, state_log="", kill_after=None,
            values="", earlier=None, effects="", shown_as="", replay=0,
        )  # fmt: skip

    def _patch_popen(self, subprocess: ModuleType) -> None:
        popen: Any = subprocess.Popen
        original = popen._execute_child

        @functools.wraps(original)
        def _execute_child(process: Any, args: Any, *rest: Any) -> Any:
            with ignored():  # then it runs as it is
                args, rest = self._recorded(args, rest)
            try:
                return original(process, args, *rest)
            except BaseException as error:
                leave_no_line(error)
                raise

        self._patches.set(popen, "_execute_child", _execute_child)

    def _patch_system(self) -> None:
        original = os.system

        def system(_self: Any, /, command: Any) -> int:
            with ignored():
                command = self._recorded_text(os.fsdecode(command), None) or command
            return original(command)

        self._patches.set(os, "system", proxy_of(original, system))

    def _patch_forks(self) -> None:
        """Note where the script itself forks, or becomes another program: neither is followed."""

        def watch(name: str, describe: Callable[..., str]) -> None:
            original, get_frame = getattr(os, name), calling_frame

            def call(_self: Any, /, *args: Any, **named: Any) -> Any:
                with ignored():
                    caller = get_frame(1).f_globals.get("__name__")
                    if not str(caller).startswith("multiprocessing."):
                        self._unrecorded(describe(*args, **named))
                try:
                    return original(*args, **named)
                except BaseException as error:
                    leave_no_line(error)
                    raise

            self._patches.set(os, name, proxy_of(original, call))

        for name in ("fork", "forkpty"):
            watch(name, lambda name=name: f"os.{name}()")
        for name in ("execv", "execve"):  # the others call these
            watch(
                name,
                lambda path, argv, *_, **__: shlex.join([os.fsdecode(path), *map(os.fsdecode, argv[1:])]),
            )

    def _recorded(self, args: Any, rest: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
        """Return the command and the other arguments of `_execute_child` for a recorded child."""
        executable, preexec, close, passed, folder, variables, startup, flags, shell, *pipes = rest
        argv = (
            [os.fsdecode(args)]
            if isinstance(args, (str, bytes, os.PathLike))
            else list(map(os.fsdecode, args))
        )
        if executable is not None:
            self._note_unrecorded([os.fsdecode(executable), *argv[1:]])
            return args, rest
        if shell:
            return self._recorded_text(" ".join(argv), folder) or args, rest
        program = self._program(argv, folder)
        if program is None:
            return args, rest
        environment = {**(os.environ if variables is None else variables), ENVIRONMENT_NAME: program[1]}
        rest = (executable, preexec, close, passed, folder, environment, startup, flags, shell, *pipes)
        return program[0], rest

    def _recorded_text(self, command: str, folder: Any) -> str | None:
        """Return a shell command changed so that its child is recorded; None where it stays as it is."""
        argv = split_command(command)
        if argv is None:
            self._note_unrecorded([command])
            return None
        program = self._program(argv, folder)
        return None if program is None else with_variable(program[0], ENVIRONMENT_NAME, program[1])

    def _note_unrecorded(self, argv: Sequence[str]) -> None:
        """Note a command that is not recorded and may train."""
        command = argv[0] if len(argv) == 1 else shlex.join(argv)
        if may_train(command):
            self._unrecorded(command)

    def _program(self, argv: list[str], folder: Any) -> tuple[list[str], str] | None:
        """Return the command of a recorded child and its settings; None where it is not recorded."""
        program = python_program(argv, folder)
        if program is None:
            self._note_unrecorded(argv)
            return None
        options, target = program
        stem = os.path.basename(target.script) if target.script is not None else str(target.module)
        settings = replace(self._child_settings(self._next(stem)), control=_carried(self._settings.control))
        return command_of(target, options), settings.to_json()

    def _next(self, stem: str) -> str:
        stem = re.sub(r"[^\w.-]", "_", stem)[:80]
        self._counts[stem] += 1
        return f"{stem}-{self._counts[stem]}"

    def _patch_processes(self, module: ModuleType) -> None:
        base: Any = module.BaseProcess
        original = base._bootstrap

        @functools.wraps(original)
        def _bootstrap(process: Any, *args: Any, **named: Any) -> Any:
            sessions: list[Any] = []
            name = ""
            with ignored():
                name = _name_of(process)
                # Processes that never import torch are not slowed down by recording.
                self._imports.on_torch(lambda _: self._begin_quietly(name, sessions))
            status = 1
            try:
                status = original(process, *args, **named)
            finally:
                with ignored(), own_package():
                    for session in sessions:
                        self._end(session, status)
            return status

        self._patches.set(base, "_bootstrap", _bootstrap)

    def _begin_quietly(self, name: str, sessions: list[Any]) -> None:
        """Record this process if it has a name; an error does not reach the import that calls this."""
        if name:
            with ignored(), own_package():
                sessions.append(self._begin(name))

    def _begin(self, name: str) -> RecordingSession:
        """Record this process, which `multiprocessing` has started."""
        from samebits.recording.session import RecordingSession

        self._settings = self._child_settings(name)
        self._folder = children_folder(self._settings.record)
        self._counts.clear()
        # It goes on where it differs, so nothing is read for that.
        session = RecordingSession(replace(self._settings, interventions=(), reference=""), (name,))
        self._unrecorded = session.note_unrecorded
        session.start()
        session.watch_draws()
        # It may be ended by SIGTERM at any time, as pools end theirs.
        session.steps.listen(lambda *_: session.writer.flush())
        return session

    @staticmethod
    def _end(session: RecordingSession, status: Any) -> None:
        from samebits.recording.session import Ending

        PATCHED.process_ends()
        trained = has_trained(session)
        failed = status not in (0, None)
        failure = f"the process ended with exit status {status}" if failed else ""
        signals = RunSignals(everywhere=True)
        signals.hold()
        try:
            session.finish(Ending("failed" if failed else "finished", status or 0, failure), signals=signals)
            if not trained:
                forget(session)
        finally:
            signals.deliver()

    def _payload(self, _executable: Any) -> Payload:
        return Payload(
            "samebits.recording.children", "begin_in_spawned", {"settings": self._settings.to_json()}
        )


def begin_in_spawned(settings: str) -> None:
    """Have a process that was started afresh recorded, once it is known what it runs.

    Args:
        settings: of the process that started it, as JSON.
    """
    ChildRecords(RecordingSettings.from_json(settings)).install()


def has_trained(session: RecordingSession) -> bool:
    """Tell whether a step or a backward pass was made."""
    return bool(session.steps.count or session.recorder.seen.backward)


def forget(session: RecordingSession) -> None:
    """Remove the record of a child that did not train."""
    record = session.writer.path
    for path in (record, record.with_name(f"{record.name}-log")):
        path.unlink(missing_ok=True)
    with suppress(OSError):  # others are there
        record.parent.rmdir()


def _carried(control: Control | None) -> Control | None:
    """Return the control of a program that this process starts: its run seed, in a scope of its own."""
    active = PROCESS.current
    if control is None or active is None:
        return control
    scope = (*active.scope, "process", thread_name(), active.number("process"))
    return active.control._replace(seed=active.seed, per_rank=False, scope=scope)


def _name_of(process: Any) -> str:
    """Return the name of a process of `multiprocessing`; empty where it only serves the training."""
    target, arguments = getattr(process, "_target", None), getattr(process, "_args", ())
    home = getattr(target, "__module__", None) or type(process).__module__
    if home == _SPAWNED_BY_TORCH and arguments and callable(arguments[0]):
        target, home = arguments[0], str(getattr(arguments[0], "__module__", ""))
    if home.startswith(_SERVICES) and home not in _POOLS:
        return ""
    name = "pool" if home in _POOLS else getattr(target, "__name__", None) or type(process).__name__
    number = ".".join(str(part) for part in getattr(process, "_identity", ()))
    return re.sub(r"[^\w.-]", "_", f"{name}-{number}")[:100]
