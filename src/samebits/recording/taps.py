"""`samebits.tap`: it names a value, so that two different programs can be compared there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from samebits._runtime.frames import calling_frame
from samebits.errors import SamebitsError

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    Listener = Callable[[str, Any, FrameType], None]

T = TypeVar("T")


class Taps:
    """The recordings of this process that are told of tapped values.

    Attributes:
        listeners: called with the name, the value and the frame of the call.
    """

    def __init__(self) -> None:
        self.listeners: tuple[Listener, ...] = ()

    def add(self, listener: Listener) -> None:
        """Tell this listener too."""
        self.listeners = (*self.listeners, listener)

    def discard(self, listener: Listener) -> None:
        """Tell it no more."""
        self.listeners = tuple([other for other in self.listeners if other != listener])


TAPS = Taps()
"""A process has one: the script calls a function, not an object."""


def tap(name: str, value: T) -> T:
    """Name a value, and return it unchanged.

    For example, `logits = samebits.tap("logits", model(x))`. While a recording is going on, the record gets
    the digest of the value and its elements: all up to 262 144 of them, else that many, spread over the
    tensor. `samebits compare --align names` then finds the first name at which two different programs part.
    The value is copied at once, so later changes in place do not matter. Without a recording nothing happens.

    Code that `torch.compile` compiles is split at a tap while a recording is going on, and with
    `fullgraph=True` torch refuses it. In a process that is forked from a recorded one (a worker of a
    `DataLoader`) nothing is recorded.

    Args:
        name: the same in both programs. Calls with one name are numbered in order.
        value: a tensor, an array of NumPy or of a library that NumPy can convert, a number, a text; or
            lists, tuples, dictionaries and dataclasses of these, whose parts are named `name.key`. Of any
            other value, and of one that holds none, such as None, the record has a note instead.

    Raises:
        SamebitsError: the name is not a text, or is empty (`tap-name`).
    """
    if not isinstance(name, str) or not name:
        found = "an empty name" if isinstance(name, str) else f"a name of type {type(name).__name__}"
        message = f'found {found} in a call of samebits.tap; expected tap("logits", tensor)'
        raise SamebitsError(message, slug="tap-name")
    for listener in TAPS.listeners:
        listener(name, value, calling_frame())
    return value
