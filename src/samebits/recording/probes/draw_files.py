"""Draws from files of the kernel that the script opens: load, memory, entropy."""

from __future__ import annotations

import builtins
import io
import os
import re
from typing import TYPE_CHECKING, Any

from samebits.hooks.frames import USER, calling_frame
from samebits.hooks.standing import leave_no_line, standing

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from samebits.hooks.patching import Patches
    from samebits.recording.probes.draw_log import DrawLog

_PLACES = ("/proc/", "/sys/")
_ENTROPY = ("/dev/urandom", "/dev/random")
_NUMBER = re.compile(r"/\d+")
_MOST = 4096  # bytes


def watch_files(patches: Patches, log: DrawLog) -> None:
    """Record what the script reads there, as it stands when the file is opened.

    Args:
        patches: undo the replacements.
        log: told of draws.
    """
    original, read = io.open, (os.open, os.read, os.close)
    stand = _opening(original, log, read)
    for owner in (builtins, io):
        if vars(owner)["open"] is original:
            patches.set(owner, "open", stand)


def _opening(function: Any, log: DrawLog, read: tuple[Callable[..., Any], ...]) -> Any:
    def call(_self: Any, /, *args: Any, **kwargs: Any) -> Any:
        try:
            file = function(*args, **kwargs)
        except BaseException as error:
            leave_no_line(error)
            raise
        if log.active:
            _note(log, args[0] if args else kwargs.get("file"), calling_frame(), read)
        return file

    return standing(function, call)


def _note(log: DrawLog, file: Any, frame: FrameType, read: tuple[Callable[..., Any], ...]) -> None:
    if not isinstance(file, str | bytes | os.PathLike):
        return
    path = os.fsdecode(file)
    if path.startswith(_ENTROPY):
        log.taken(path, frame, _contents(path, read))
    elif path.startswith(_PLACES):
        found = log.asker(frame, _NUMBER.sub("/N", path))
        if found is not None and log.ranks.of(found[0]) == USER:  # a fact: libraries ask for logs
            log.taken_by_user(found[1], found[0], _contents(path, read))


def _contents(path: str, read: tuple[Callable[..., Any], ...]) -> bytes:
    open_file, read_file, close_file = read
    try:
        descriptor = open_file(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return b""
    try:
        return bytes(read_file(descriptor, _MOST))
    except OSError:
        return b""
    finally:
        close_file(descriptor)
