"""An intervention, and the tools of its part inside the process: replaced functions and files."""

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
    """Replaces functions, and restores them.

    Attributes:
        asker: tells on whose behalf a function was called.
        patches: replaced attributes.
        static: replaced methods of C types.
        imports: calls back when a module is imported.
        at_end: functions that are called when everything is restored.
    """

    def __init__(self) -> None:
        self.asker = Asker()
        self.patches = Patches()
        self.static = StaticTypePatches()
        self.imports = PostImport()
        self.at_end: list[Callable[[], None]] = []

    def replace(self, owner: Any, name: str, give: Give, rule: Rule) -> None:
        """Replace `owner.name` for the callers for which a rule holds.

        Args:
            owner: a module; nothing is done where it has no such function.
            name: the function.
            give: the replacement; it is called with the original and the arguments.
            rule: tells whether the replacement is for a calling frame.
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
        """Restore everything."""
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
        words: its description in a report, after "in runs".
        environment: variables of the run.
        fixed_layout: whether address space randomisation is switched off.
        sources: names of the RNG sources that are seeded.
        switches: (name, value) of switches that are set; all others are left alone.
        patch: installs its part inside the process.
        obstacle: returns the reason why it is impossible on this machine; empty when it is possible.
        limits: a description of what it does not reach.
        on_gpu: whether it changes nothing where no GPU is in use.
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
    on_gpu: bool = False


def number_for(*keys: int | str) -> int:
    """Return 64 bits that are the same in every run, and different in each process of a run.

    Args:
        keys: the name of the number.
    """
    active = PROCESS.current
    return derive(_BASE, *(() if active is None else active.scope), *keys)


_KERNEL_PATHS = ("/proc/", "/sys/", "/dev/urandom", "/dev/random")


class OpenedFiles:
    """Gives the user's own code other contents for some files of the kernel.

    Args:
        replacements: the replacements of the intervention.
        contents: returns the new contents of a file by its absolute path; None leaves the file alone.
    """

    def __init__(self, replacements: Replacements, contents: Callable[[str], bytes | None]) -> None:
        self._replacements = replacements
        self._contents = contents

    def install(self) -> None:
        """Replace the functions that open files."""
        replacements, rule = self._replacements, self._replacements.asker.is_user_asked
        opened = io.open
        replacements.replace(builtins, "open", self._open, rule)
        if io.open is opened:  # not the same name as `builtins`
            replacements.patches.set(io, "open", builtins.open)
        replacements.replace(os, "open", self._open_descriptor, rule)

    def _open(self, function: Any, file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        contents = self._new_contents(file) if "r" in mode and "+" not in mode else None
        if contents is None:
            return function(file, mode, *args, **kwargs)
        return function(_descriptor(contents), mode, *args, **kwargs)

    def _open_descriptor(self, function: Any, path: Any, flags: int, *args: Any, **kwargs: Any) -> Any:
        writes = flags & (os.O_WRONLY | os.O_RDWR)
        contents = None if writes or kwargs.get("dir_fd") is not None else self._new_contents(path)
        return function(path, flags, *args, **kwargs) if contents is None else _descriptor(contents)

    def _new_contents(self, file: Any) -> bytes | None:
        if not isinstance(file, str | bytes | os.PathLike):
            return None
        path = os.path.abspath(os.fsdecode(file))
        return self._contents(path) if path.startswith(_KERNEL_PATHS) else None


def _descriptor(contents: bytes) -> int:
    """Return the descriptor of a real file, which C code can read too and which vanishes when closed."""
    if hasattr(os, "memfd_create"):
        descriptor: int = os.memfd_create("samebits")
    else:
        descriptor, path = tempfile.mkstemp()
        os.unlink(path)
    os.write(descriptor, contents)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor
