"""The intervention `serial-streams`: a GPU finishes what it was given before another stream goes on.

Each change of the current stream waits for the devices, and so does each copy between a device and the host
that would not wait. `CUDA_LAUNCH_BLOCKING` makes every kernel wait, also one that C++ code starts on a stream
of its own.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from samebits._runtime.builtin_proxies import leave_no_line
from samebits._torch.core import cuda_index_of
from samebits.interventions.intervention import Intervention

if TYPE_CHECKING:
    from collections.abc import Callable

    from samebits.interventions.intervention import Replacements

_COPIES = ("to", "cuda", "cpu", "copy_")


def serialize_streams(replacements: Replacements) -> None:
    """Wait for the devices at each change of the current stream, and for each copy to or from a device."""
    replacements.imports.on_torch(lambda torch: _serialize(replacements, torch))


def _serialize(replacements: Replacements, torch: Any) -> None:
    wait = _Wait(torch)
    for module in (torch.cuda, getattr(torch, "accelerator", None)):
        change = getattr(module, "set_stream", None)
        if change is not None:  # not every release has all of them
            replacements.patches.set(module, "set_stream", _waiting(change, wait))
    for name in ("__enter__", "__exit__"):
        if name in vars(torch.Stream):  # of which torch.cuda.Stream is a subclass
            replacements.static.set(torch.Stream, name, _waiting(getattr(torch.Stream, name), wait))
    for name in _COPIES:
        replacements.patches.set(torch.Tensor, name, _finished(getattr(torch.Tensor, name), wait, torch))


class _Wait:
    """Waits for the devices that were seen in use."""

    def __init__(self, torch: Any) -> None:
        self._cuda = torch.cuda
        self._devices: set[int] = set()

    def is_possible(self) -> bool:
        """Tell whether a device is in use, and no graph is being captured, within which nothing may wait."""
        return bool(self._cuda.is_initialized()) and not self._cuda.is_current_stream_capturing()

    def for_all(self) -> None:
        """Wait for the current device, and those that were current before or were copied to or from."""
        self._devices.add(self._cuda.current_device())
        for device in self._devices:
            self._cuda.synchronize(device)

    def for_copy(self, tensors: list[Any]) -> None:
        """Wait for the devices of some tensors, if there are any."""
        devices = {index for index in map(cuda_index_of, tensors) if index is not None}
        if devices and self.is_possible():
            self._devices |= devices
            self.for_all()


def _waiting(change: Callable[..., Any], wait: _Wait) -> Callable[..., Any]:
    """Return a function that changes the stream once the devices have ended their work."""

    @functools.wraps(change)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            # While a graph is captured, a new stream becomes part of it only when it waits for another one.
            waits = wait.is_possible()
            if waits:
                wait.for_all()
            changed = change(*args, **kwargs)
            if waits:
                wait.for_all()  # the device of the new stream may be another one
        except BaseException as error:
            leave_no_line(error)
            raise
        return changed

    return call


def _finished(copy: Callable[..., Any], wait: _Wait, torch: Any) -> Callable[..., Any]:
    """Return a method that has copied when it returns."""

    @functools.wraps(copy)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        if torch.compiler.is_compiling():
            return copy(self, *args, **kwargs)
        try:
            copied = copy(self, *args, **kwargs)
            wait.for_copy([self, copied, *args, *kwargs.values()])
        except BaseException as error:
            leave_no_line(error)
            raise
        return copied

    return method


SERIAL_STREAMS = Intervention(
    "serial-streams",
    "with one CUDA stream at work at a time, and copies that wait",
    environment=(("CUDA_LAUNCH_BLOCKING", "1"),),
    patch=serialize_streams,
    limits="copies that C++ code starts on streams of its own; copies in compiled code; what a captured "
    "graph does",
    on_gpu=True,
)
