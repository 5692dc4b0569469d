"""An intervention, and what its in-process part works with: functions and files that are replaced."""

from __future__ import annotations

import builtins
import io
import os
import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from samebits._runtime.builtin_proxies import leave_no_line, proxy_of
from samebits._runtime.frames import Asker, calling_frame
from samebits._runtime.imports import PostImport
from samebits._runtime.patching import Patches, StaticTypePatches
from samebits.rng.active import PROCESS
from samebits.rng.seeds import derive

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    Give = Callable[..., Any]
    Rule = Callable[[FrameType | None], bool]

_BASE = 0x5EED


class Replacements:
    """Replaces functions, and puts them back.

    Attributes:
        asker: says for whose code a function was called.
        patches: replaced attributes.
        static: replaced methods of C types.
        imports: calls back when a module is imported.
        at_end: called when all is put back.
    """

    def __init__(self) -> None:
        self.asker = Asker()
        self.patches = Patches()
        self.static = StaticTypePatches()
        self.imports = PostImport()
        self.at_end: list[Callable[[], None]] = []

    def replace(self, owner: Any, name: str, give: Give, rule: Rule) -> None:
        """Have `owner.name` give another answer to those for whom the rule holds.

        Args:
            owner: a module; nothing is done where it has no such function.
            name: the function.
            give: takes the original and the arguments.
            rule: takes the calling frame.
        """
        function = getattr(owner, name, None)
        if function is None:
            return
        get_frame = calling_frame

        def call(_self: Any, /, *args: Any, **kwargs: Any) -> Any:
            try:
                if rule(get_frame(1)):
                    return give(function, *args, **kwargs)
                return function(*args, **kwargs)
            except BaseException as error:
                leave_no_line(error)
                raise

        self.patches.set(owner, name, proxy_of(function, call))

    def remove(self) -> None:
        """Put everything back."""
        self.imports.remove()
        self.patches.restore()
        self.static.restore()
        while self.at_end:
            self.at_end.pop()()


@dataclass(frozen=True, slots=True)
class Intervention:
    """One thing that can be fixed in a run, the same in every run that has it.

    Args:
        name: what the user types.
        words: for a report, after "in runs".
        environment: variables of the run.
        fixed_layout: address space randomisation is off.
        sources: names of the RNG sources that are seeded.
        switches: (name, value) of switches that are set; all others are left alone.
        patch: puts its in-process part in place.
        obstacle: says why it cannot be had on this machine; empty when it can.
        limits: what it does not reach.
    """

    name: str
    words: str
    environment: tuple[tuple[str, str], ...] = ()
    fixed_layout: bool = False
    sources: tuple[str, ...] = ()
    switches: tuple[tuple[str, str], ...] = ()
    patch: Callable[[Replacements], None] | None = None
    obstacle: Callable[[], str] = str
    limits: str = ""


def number_for(*keys: int | str) -> int:
    """Return 64 bits that are the same in every run, and others in each process of a run.

    Args:
        keys: a name.
    """
    active = PROCESS.current
    return derive(_BASE, *(() if active is None else active.scope), *keys)


_KERNEL_PATHS = ("/proc/", "/sys/", "/dev/urandom", "/dev/random")


class OpenedFiles:
    """Gives the user's own code a file of this process instead of some of the kernel's.

    Args:
        replacements: of the intervention.
        contents: what a file is to hold, by its absolute path; None for what it holds.
    """

    def __init__(self, replacements: Replacements, contents: Callable[[str], bytes | None]) -> None:
        self._replacements = replacements
        self._contents = contents

    def install(self) -> None:
        """Begin."""
        replacements, rule = self._replacements, self._replacements.asker.is_user_asked
        opened = io.open
        replacements.replace(builtins, "open", self._open, rule)
        if io.open is opened:  # not the same name as `builtins`
            replacements.patches.set(io, "open", builtins.open)
        replacements.replace(os, "open", self._open_descriptor, rule)

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
        return self._contents(path) if path.startswith(_KERNEL_PATHS) else None


def _descriptor(contents: bytes) -> int:
    """Return a real file, which C code can read too; it is gone when it is closed."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("samebits")
    else:
        descriptor, path = tempfile.mkstemp()
        os.unlink(path)
    os.write(descriptor, contents)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor
