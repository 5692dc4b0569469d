"""What a cell writes while it runs again, hidden: by Python, through kept streams, by child processes."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from typing import TYPE_CHECKING, Any

from IPython.utils.capture import capture_output

if TYPE_CHECKING:
    from collections.abc import Iterator

_DESCRIPTORS = (1, 2)


@contextlib.contextmanager
def hidden_output() -> Iterator[None]:
    """Let nobody see what is written or displayed in the block.

    IPython captures what goes through `sys.stdout` and `sys.stderr`. A logger that was set up in an earlier
    cell holds the stream itself, and a child process writes to the descriptors of this one.
    """
    with contextlib.ExitStack() as stack:
        for stream in (sys.stdout, sys.stderr):
            stack.enter_context(_mute(stream))
        for number in _DESCRIPTORS:
            stack.enter_context(_to_nowhere(number))
        stack.enter_context(capture_output())
        yield


@contextlib.contextmanager
def _mute(stream: Any) -> Iterator[None]:
    """Have a stream take what is written to it and drop it; one of C goes to its descriptor."""
    _flush(stream)
    space = getattr(stream, "__dict__", None)
    if space is None:
        yield
        _flush(stream)
        return
    before = dict(space)
    write = stream.write
    # A thread of ipykernel reads what the run before has written to the descriptor.
    reader = space.get("watch_fd_thread", before)

    def drop(text: str) -> int | None:
        return write(text) if threading.current_thread() is reader else len(text)

    space["write"] = drop
    try:
        yield
    finally:
        space.pop("write")
        if "write" in before:  # IPython's own, which keeps what a cell shows
            space["write"] = before["write"]


def _flush(stream: Any) -> None:
    with contextlib.suppress(OSError, ValueError, AttributeError):
        stream.flush()


@contextlib.contextmanager
def _to_nowhere(number: int) -> Iterator[None]:
    try:
        copy = os.dup(number)
    except OSError:  # it is closed
        yield
        return
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, number)
        os.close(nowhere)
        yield
    finally:
        os.dup2(copy, number)
        os.close(copy)
