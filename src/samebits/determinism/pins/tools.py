"""What the in-process part of a pin works with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from samebits.determinism.process import PROCESS
from samebits.determinism.seeds import derive
from samebits.hooks.asking import Asker
from samebits.hooks.frames import calling_frame
from samebits.hooks.imports import PostImport
from samebits.hooks.patching import Patches
from samebits.hooks.standing import leave_no_line, standing
from samebits.hooks.static_types import StaticTypePatches

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    Give = Callable[..., Any]
    Rule = Callable[[FrameType | None], bool]

_BASE = 0x5EED


class PinTools:
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

        self.patches.set(owner, name, standing(function, call))

    def remove(self) -> None:
        """Put everything back."""
        self.imports.remove()
        self.patches.restore()
        self.static.restore()
        while self.at_end:
            self.at_end.pop()()


def number_for(*keys: int | str) -> int:
    """64 bits that are the same in every run, and others in each process of a run.

    Args:
        keys: a name.
    """
    active = PROCESS.current
    return derive(_BASE, *(() if active is None else active.scope), *keys)
