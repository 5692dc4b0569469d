"""Effects of a run outside of itself, and the files of an earlier run that it reads."""

from __future__ import annotations

import builtins
import io
import json
import os
import stat
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from samebits._runtime.builtin_proxies import leave_no_line, proxy_of
from samebits._runtime.frames import USER, FrameRanks, calling_frame, ignored, pass_on, site_of
from samebits._runtime.patching import Patches
from samebits._torch.compiler import kernel_caches

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from samebits.digest.pending import Digests
    from samebits.recording.settings import EarlierRun
    from samebits.records.events import TensorInfo

NONE = "none"
"""The note at the end of a run that had no visible effect."""
_UNKNOWN = "unknown"
SAVED = "samebits.save"
"""The audit event of a file that torch writes; has its path."""
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
# Python's audit events (docs.python.org, "Audit events table"). Of files:
_OF_FILES = frozenset((
    "open", "os.chmod", "os.chown", "os.link", "os.mkdir", "os.remove", "os.removexattr", "os.rename",
    "os.rmdir", "os.setxattr", "os.symlink", "os.truncate", "os.utime", "sqlite3.connect", SAVED,
))  # fmt: skip
# ... of other processes, and of what only one can have.
_OF_OTHERS = frozenset((
    "builtins.input", "fcntl.flock", "fcntl.lockf", "os.exec", "os.fork", "os.forkpty", "os.kill",
    "os.killpg", "os.lockf", "os.posix_spawn", "os.spawn", "os.system", "pty.spawn", "socket.bind",
    "socket.connect", "subprocess.Popen",
))  # fmt: skip
_WATCHED = _OF_FILES | _OF_OTHERS | {"import"}
# Nothing tells when they start a process; that they are imported does.
_SPAWNING = frozenset(("multiprocessing.popen_spawn_posix", "multiprocessing.popen_forkserver"))
_HARMLESS = frozenset(
    f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom", "stdin", "stdout", "stderr")
)
_DEVICES = ("nvidia", "kfd", "dri/", "accel", "davinci", "habanalabs", "neuron", "xdna")
_OPENED = ("socket:", *(f"/dev/{name}" for name in _DEVICES))


class EffectsProbe:
    """Notes the first time that a run writes, locks, sends, asks or starts something, or that it never did.

    Python's audit events cover its own library. Compiled code is seen in part: sockets and devices that are
    open at the first step boundary or at the end. Records, compiled modules, and what a library does while it
    is imported do not count.

    Args:
        notes: file that gets the note; without one the run did not come to its end, and nothing is known.
        own: beginnings of the absolute paths that samebits itself uses in this run.
    """

    def __init__(self, notes: str, own: tuple[str, ...]) -> None:
        self._notes = notes
        self._own = (os.path.abspath(notes), *own)
        self._ranks = FrameRanks()
        self._watching = False
        self._checked = False

    def install(self) -> None:
        """Watch until the first effect, or `remove`; Python keeps the hook for as long as it lives."""
        self._watching = True
        sys.addaudithook(self._hook())

    def remove(self) -> None:
        """Check all signs a last time, and stop watching."""
        self._check(_SIGNS)
        if self._watching:
            self._note(NONE)

    def __call__(self, _infos: tuple[TensorInfo, ...], _digests: Digests) -> None:
        """Check all signs at the first boundary, and for a process group at each."""
        self._check((_is_distributed,) if self._checked else _SIGNS)
        self._checked = True

    def _hook(self) -> Callable[[str, tuple[Any, ...]], None]:
        watched, is_effect, note, here = _WATCHED, self._is_effect, self._note, sys._getframe

        def audit(event: str, arguments: tuple[Any, ...]) -> None:
            if event not in watched or not self._watching:
                return
            try:
                effect = event if is_effect(event, arguments, here(1)) else ""
            except Exception as error:  # noqa: BLE001 - it would be raised into the script
                pass_on(error)
                effect = _UNKNOWN
            if effect:
                note(effect)

        return audit

    def _is_effect(self, event: str, arguments: tuple[Any, ...], frame: FrameType) -> bool:
        if event == "import":
            return arguments[0] in _SPAWNING
        if event == "open" and not _writes(*arguments):
            return False
        if event in _OF_FILES and self._is_own(arguments[:1] if event == "open" else arguments):
            return False
        return not self._ranks.is_imported(frame)

    def _is_own(self, arguments: tuple[Any, ...]) -> bool:
        """Tell whether an event concerns only files that no other run sees."""
        paths = [each for each in arguments if isinstance(each, (str, bytes, os.PathLike))]
        return bool(paths) and all(map(self._is_own_path, paths))

    def _is_own_path(self, given: str | bytes | os.PathLike[Any]) -> bool:
        path = os.fsdecode(given)
        if path.startswith("file:"):  # as SQLite is told
            from urllib.parse import unquote  # pathlib has imported it to make the address

            path = unquote(path.removeprefix("file:"))
        path = os.path.abspath(path)
        return path in _HARMLESS or path.startswith(self._own) or f"{os.sep}__pycache__" in path

    def _check(self, signs: tuple[Callable[[], bool], ...]) -> None:
        """Note an effect of compiled code if there is a sign of one."""
        if not self._watching:
            return
        try:
            effect = "opened" if any(sign() for sign in signs) else ""
        except Exception as error:  # noqa: BLE001 - of a library that is half imported; nothing is known then
            pass_on(error)
            effect = _UNKNOWN
        if effect:
            self._note(effect)

    def _note(self, text: str) -> None:
        """Write the only note, and stop watching; a missing note says that nothing is known."""
        self._watching = False
        with suppress(OSError):
            file = os.open(self._notes, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            try:
                os.write(file, f"{text}\n".encode())
            finally:
                os.close(file)


def _writes(path: object, _mode: object, flags: object) -> bool:
    """Tell whether `open` is asked for a file to write; what opened a descriptor was seen before."""
    return isinstance(flags, int) and flags & _WRITING != 0 and not isinstance(path, int)


def _has_opened() -> bool:
    """Tell whether this process has a socket or an accelerator open, perhaps by compiled code."""
    names = [name for name in os.listdir("/proc/self/fd") if int(name) > 2]
    return any(_target(name).startswith(_OPENED) for name in names)


def _target(name: str) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{name}")
    except OSError:  # that of the listing itself
        return ""


def _has_device() -> bool:
    """Tell whether torch has begun to use an accelerator, which may not have enough memory for two."""
    torch = sys.modules.get("torch")
    kinds = (getattr(torch, name, None) for name in ("cuda", "xpu"))
    return any(kind is not None and kind.is_initialized() for kind in kinds)


def _is_distributed() -> bool:
    """Tell whether this process belongs to a process group, which has a port."""
    distributed = sys.modules.get("torch.distributed")
    return distributed is not None and distributed.is_available() and bool(distributed.is_initialized())


_SIGNS = (_is_distributed, _has_device, _has_opened)


_NEW = frozenset("wx")  # modes that leave nothing of what was there


class EarlierFiles:
    """Notes each file that is opened for reading and was last changed while an earlier run was going on.

    The time of the last change of the file's status (`st_ctime`) decides, since no program can set it: a file
    that was unpacked or copied with an old date has a new one.

    Args:
        earlier: when that run was going on, and where the files are noted.
        own: beginnings of the absolute paths that samebits itself uses in this run.
    """

    def __init__(self, earlier: EarlierRun, own: tuple[str, ...]) -> None:
        self._earlier = earlier
        self._own = own
        self._ranks = FrameRanks()
        self._patches = Patches()
        self._noted: set[str] = set()
        self._append = io.open

    @property
    def any(self) -> bool:
        """True once such a file was opened."""
        return bool(self._noted)

    def install(self) -> None:
        """Watch `open`."""
        original = io.open
        proxy = self._opening(original)
        for owner in (builtins, io):
            if vars(owner)["open"] is original:
                self._patches.set(owner, "open", proxy)

    def remove(self) -> None:
        """Watch nothing."""
        self._patches.restore()

    def _opening(self, function: Any) -> Any:
        note = self._note

        def call(_self: Any, /, *args: Any, **kwargs: Any) -> Any:
            try:
                file = function(*args, **kwargs)
            except BaseException as error:
                leave_no_line(error)
                raise
            mode = args[1] if len(args) > 1 else kwargs.get("mode", "r")
            with ignored():  # whatever a script gives `open`, its file is its own
                note(args[0] if args else kwargs["file"], mode, file, calling_frame())
            return file

        return proxy_of(function, call)

    def _note(self, path: Any, mode: Any, file: Any, frame: FrameType) -> None:
        if isinstance(path, int) or not _NEW.isdisjoint(mode) or not file.readable():
            return
        status = os.fstat(file.fileno())
        earlier = self._earlier
        if not stat.S_ISREG(status.st_mode) or not earlier.since <= status.st_ctime_ns < earlier.until:
            return
        name = os.path.abspath(os.fsdecode(path))
        user = self._user(frame)
        if name in self._noted or name.startswith((*self._own, *kernel_caches())) or user is None:
            return
        self._noted.add(name)
        site = site_of(user.f_code, user.f_lineno)
        line = json.dumps([name, status.st_ctime_ns, site.file, site.line, site.function])
        with self._append(earlier.notes, "a", encoding="utf-8") as notes:
            notes.write(line + "\n")

    def _user(self, frame: FrameType | None) -> FrameType | None:
        """Return the user's frame that reads; None for a library that reads while it is imported."""
        if self._ranks.is_imported(frame):
            return None
        while frame is not None and self._ranks.of(frame) != USER:
            frame = frame.f_back
        return frame
