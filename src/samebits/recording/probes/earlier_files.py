"""Files that the script reads as an earlier run left them: caches, processed data, checkpoints."""

from __future__ import annotations

import builtins
import io
import json
import os
import stat
from typing import TYPE_CHECKING, Any

from samebits.hooks.frames import USER, FrameRanks, calling_frame, site_of
from samebits.hooks.interruptions import ignored
from samebits.hooks.patching import Patches
from samebits.hooks.standing import leave_no_line, standing

if TYPE_CHECKING:
    from types import FrameType

    from samebits.recording.settings import EarlierRun

_NEW = frozenset("wx")  # modes that leave nothing of what was there


class EarlierFiles:
    """Notes each file that is opened for reading and was last changed while an earlier run was going on.

    It is told by the time of the last change of the file's status (`st_ctime`), which no program can set: a
    file that was unpacked or copied with an old date has a new one.

    Args:
        earlier: when that run was going on, and where the files are noted.
    """

    def __init__(self, earlier: EarlierRun) -> None:
        self._earlier = earlier
        self._ranks = FrameRanks()
        self._patches = Patches()
        self._noted: set[str] = set()
        self._append = io.open

    @property
    def any(self) -> bool:
        """Whether there was one."""
        return bool(self._noted)

    def install(self) -> None:
        """Watch `open`."""
        original = io.open
        stand = self._opening(original)
        for owner in (builtins, io):
            if vars(owner)["open"] is original:
                self._patches.set(owner, "open", stand)

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

        return standing(function, call)

    def _note(self, path: Any, mode: Any, file: Any, frame: FrameType) -> None:
        if isinstance(path, int) or not _NEW.isdisjoint(mode) or not file.readable():
            return
        status = os.fstat(file.fileno())
        earlier = self._earlier
        if not stat.S_ISREG(status.st_mode) or not earlier.since <= status.st_ctime_ns < earlier.until:
            return
        name = os.path.abspath(os.fsdecode(path))
        user = self._user(frame)
        if name in self._noted or user is None:
            return
        self._noted.add(name)
        site = site_of(user.f_code, user.f_lineno)
        line = json.dumps([name, status.st_ctime_ns, site.file, site.line, site.function])
        with self._append(earlier.notes, "a", encoding="utf-8") as notes:
            notes.write(line + "\n")

    def _user(self, frame: FrameType | None) -> FrameType | None:
        """The user's code that reads; None for a library that reads while it is imported."""
        if self._ranks.is_imported(frame):
            return None
        while frame is not None and self._ranks.of(frame) != USER:
            frame = frame.f_back
        return frame
