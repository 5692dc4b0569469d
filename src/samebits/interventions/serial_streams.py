"""The intervention `serial-streams`: a GPU finishes what it was given before another stream goes on.

Each change of the current stream waits for the device, and so does each copy between a device and the host
that would not wait. `CUDA_LAUNCH_BLOCKING` makes every kernel wait, also one that C++ code starts on a stream
of its own.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from samebits._runtime.builtin_proxies import leave_no_line
from samebits.interventions.intervention import Intervention

if TYPE_CHECKING:
    from collections.abc import Callable

    from samebits.interventions.intervention import Replacements

_COPIES = ("to", "cuda", "cpu", "copy_")


def serialize_streams(replacements: Replacements) -> None:
    """Wait for the device at each change of the current stream, and for each copy that leaves a device."""
    replacements.imports.on_torch(lambda torch: _serialize(replacements, torch))


def _serialize(replacements: Replacements, torch: Any) -> None:
    changes = ((torch.cuda, "set_stream"), (torch.cuda.Stream, "__enter__"), (torch.cuda.Stream, "__exit__"))
    for owner, name in changes:
        change = getattr(owner, name, None)
        if change is not None:  # a stream is no context manager in torch before 2.7
            replacements.patches.set(owner, name, _waiting(change, torch))
    for name in _COPIES:
        replacements.patches.set(torch.Tensor, name, _finished(getattr(torch.Tensor, name), torch))


def _waiting(change: Callable[..., Any], torch: Any) -> Callable[..., Any]:
    """Return a function that changes the stream once the device has ended its work."""

    @functools.wraps(change)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            # While a graph is captured, a new stream becomes part of it only when it waits for another one.
            waits = _may_wait(torch)
            if waits:
                torch.cuda.synchronize()
            changed = change(*args, **kwargs)
            if waits:
                torch.cuda.synchronize()  # the device of the new stream, which may be another one
        except BaseException as error:
            leave_no_line(error)
            raise
        return changed

    return call


def _finished(copy: Callable[..., Any], torch: Any) -> Callable[..., Any]:
    """Return a method that has copied when it returns."""

    @functools.wraps(copy)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        if torch.compiler.is_compiling():
            return copy(self, *args, **kwargs)
        try:
            copied = copy(self, *args, **kwargs)
            on_device = self.is_cuda or getattr(copied, "is_cuda", False)
            if on_device and _may_wait(torch):
                torch.cuda.synchronize()
        except BaseException as error:
            leave_no_line(error)
            raise
        return copied

    return method


def _may_wait(torch: Any) -> bool:
    """Tell whether a device is in use, and no graph is being captured, within which nothing may wait."""
    return bool(torch.cuda.is_initialized()) and not torch.cuda.is_current_stream_capturing()


SERIAL_STREAMS = Intervention(
    "serial-streams",
    "with one CUDA stream at work at a time, and copies that wait",
    environment=(("CUDA_LAUNCH_BLOCKING", "1"),),
    patch=serialize_streams,
    limits="copies that C++ code starts on streams of its own; what a captured graph does",
)
