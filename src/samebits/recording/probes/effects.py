"""What a run changes or takes outside of itself: another run could not go on at the same time."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from samebits.hooks.frames import USER, FrameRanks
from samebits.recording.probes.saves import SAVED

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from samebits.recording.events import TensorInfo

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
# Python's audit events (docs.python.org, "Audit events table"). Of other programs nothing is known.
_CHANGES = frozenset((
    "os.chmod", "os.chown", "os.exec", "os.link", "os.mkdir", "os.posix_spawn", "os.remove", "os.removexattr",
    "os.rename", "os.rmdir", "os.setxattr", "os.spawn", "os.symlink", "os.system", "os.truncate", "os.utime",
    "builtins.input", "fcntl.flock", "fcntl.lockf", "pty.spawn", "socket.bind", "socket.connect",
    "sqlite3.connect", "subprocess.Popen", SAVED,
))  # fmt: skip
_SPAWNING = frozenset(("multiprocessing.popen_spawn_posix", "multiprocessing.popen_forkserver"))
# They give names that no other process has.
_BETWEEN_WORKERS = frozenset(("multiprocessing.resource_sharer", "multiprocessing.util"))
_HARMLESS = ("/dev/", "/proc/self/", "/proc/thread-self/")
_SHARED_MEMORY = "/dev/shm/"  # noqa: S108 - named, and seen by all


class EffectsProbe:
    """Notes that a run writes, locks, sends, asks or starts something: one line, at the first time.

    Python tells of what goes through its own library. What compiled code does is seen in part: sockets and
    devices that are open at the first step boundary or at the end. Left out are records, compiled modules,
    what a library does while it is imported, and how `multiprocessing` serves its processes.

    Args:
        notes: file that gets the line.
        own: folder of the records.
    """

    def __init__(self, notes: str, own: str) -> None:
        self._notes = notes
        self._own = os.path.join(os.path.abspath(own), "")
        self._ranks = FrameRanks()
        self._watching = False
        self._looked = False

    def install(self) -> None:
        """Watch until the first effect, or `remove`; Python keeps the hook for as long as it lives."""
        self._watching = True
        sys.addaudithook(self._hook())

    def remove(self) -> None:
        """Look a last time; watch nothing any more."""
        self._look()
        self._watching = False

    def __call__(self, _infos: tuple[TensorInfo, ...], _digests: bytes) -> None:
        """Called at each boundary."""
        if not self._looked:
            self._looked = True
            self._look()

    def _hook(self) -> Callable[[str, tuple[Any, ...]], None]:
        changes, is_effect, note, here = _CHANGES, self._is_effect, self._note, sys._getframe

        def audit(event: str, arguments: tuple[Any, ...]) -> None:
            if not self._watching or not (event in changes or event in ("open", "import")):
                return
            try:
                if is_effect(event, arguments, here(1)):
                    note(event)
            except Exception:  # noqa: BLE001 - it would be raised into the script
                note("unknown")

        return audit

    def _is_effect(self, event: str, arguments: tuple[Any, ...], frame: FrameType) -> bool:
        if event == "import":
            return arguments[0] in _SPAWNING
        if event == "open" and not _writes(*arguments):
            return False
        return not (self._is_own(arguments) or self._is_internal(frame))

    def _is_own(self, arguments: tuple[Any, ...]) -> bool:
        """Whether it is about a file that no other run sees."""
        if not arguments or not isinstance(arguments[0], (str, bytes, os.PathLike)):
            return False
        path = os.path.abspath(os.fsdecode(arguments[0]).removeprefix("file:"))
        if path.startswith(_HARMLESS):
            return not path.startswith(_SHARED_MEMORY)
        return path.startswith(self._own) or f"{os.sep}__pycache__" in path

    def _is_internal(self, frame: FrameType | None) -> bool:
        """Whether a library does it while it is imported, or to hand values from one worker to another."""
        while frame is not None and self._ranks.of(frame) != USER:
            if frame.f_code.co_filename.startswith("<frozen importlib"):
                return True
            if frame.f_globals.get("__name__") in _BETWEEN_WORKERS:
                return True
            frame = frame.f_back
        return False

    def _look(self) -> None:
        if self._watching and (_has_sockets() or _has_device()):
            self._note("open")

    def _note(self, event: str) -> None:
        self._watching = False
        file = os.open(self._notes, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(file, f"{event}\n".encode())
        finally:
            os.close(file)


def _writes(path: object, _mode: object, flags: object) -> bool:
    """Whether `open` is asked for a file to write; what opened a descriptor was seen before."""
    return isinstance(flags, int) and flags & _WRITING != 0 and not isinstance(path, int)


def _has_sockets() -> bool:
    """Whether this process has opened a socket, be it by compiled code."""
    try:
        names = os.listdir("/proc/self/fd")
    except OSError:
        return False
    return any(int(name) > 2 and _target(name).startswith("socket:") for name in names)


def _target(name: str) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{name}")
    except OSError:  # that of the listing itself
        return ""


def _has_device() -> bool:
    """Whether torch has begun to use an accelerator: there may be no memory of it for two."""
    torch = sys.modules.get("torch")
    kinds = (getattr(torch, name, None) for name in ("cuda", "xpu"))  # where there is /proc
    return any(kind is not None and kind.is_initialized() for kind in kinds)
