"""Files of the kernel that the script opens, given other contents."""

from __future__ import annotations

import builtins
import io
import os
import tempfile
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from samebits.determinism.pins.tools import PinTools

_PLACES = ("/proc/", "/sys/", "/dev/urandom", "/dev/random")


class OpenedFiles:
    """Gives the user's own code a file of this process in the place of some of the kernel's.

    Args:
        tools: of the pin.
        contents: what a file is to hold, by its absolute path; None for what it holds.
    """

    def __init__(self, tools: PinTools, contents: Callable[[str], bytes | None]) -> None:
        self._tools = tools
        self._contents = contents

    def install(self) -> None:
        """Begin."""
        tools, rule = self._tools, self._tools.asker.is_user_asked
        opened = io.open
        tools.replace(builtins, "open", self._open, rule)
        if io.open is opened:  # not the same place as `builtins`
            tools.patches.set(io, "open", builtins.open)
        tools.replace(os, "open", self._open_descriptor, rule)

    def _open(self, function: Any, file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        contents = self._wanted(file) if "r" in mode and "+" not in mode else None
        if contents is None:
            return function(file, mode, *args, **kwargs)
        return function(_descriptor(contents), mode, *args, **kwargs)

    def _open_descriptor(self, function: Any, path: Any, flags: int, *args: Any, **kwargs: Any) -> Any:
        writes = flags & (os.O_WRONLY | os.O_RDWR)
        contents = None if writes or kwargs.get("dir_fd") is not None else self._wanted(path)
        return function(path, flags, *args, **kwargs) if contents is None else _descriptor(contents)

    def _wanted(self, file: Any) -> bytes | None:
        if not isinstance(file, str | bytes | os.PathLike):
            return None
        path = os.path.abspath(os.fsdecode(file))
        return self._contents(path) if path.startswith(_PLACES) else None


def _descriptor(contents: bytes) -> int:
    """A real file, which C code can read too; it is gone when it is closed."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("samebits")
    else:
        descriptor, path = tempfile.mkstemp()
        os.unlink(path)
    os.write(descriptor, contents)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor
