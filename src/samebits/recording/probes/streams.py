"""Streams that the script makes on a GPU: what they write may not be there when a step is closed."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from samebits._runtime.builtin_proxies import leave_no_line
from samebits._runtime.patching import Patches, StaticTypePatches

if TYPE_CHECKING:
    from collections.abc import Callable


class StreamProbe:
    """Notes on which devices the script has streams of its own.

    Digests are computed on the current stream, after all that is queued there. Work of another stream, such
    as a copy of the weights that is made beside the training, may still go on, or begin before the digest is
    computed: whether that is of what was there before or after would be chance.

    A `torch.cuda.Stream` is noted when it is made, also one around a stream of other code (`ExternalStream`).
    A `torch.Stream` is noted when it becomes the current one: its type is written in C, and nothing sees that
    one is made. Streams of C++ code, such as those of NCCL, are not noted.
    """

    def __init__(self) -> None:
        self._patches = Patches()
        self._static = StaticTypePatches()
        self._devices: set[int] = set()
        self._torch: Any = None

    def install(self, torch: Any) -> None:
        """Watch the ways to make a stream and to make it the current one."""
        self._torch = torch
        self._watch_making(torch.cuda.Stream)
        if "__enter__" in vars(torch.Stream):  # not in every release
            self._static.set(torch.Stream, "__enter__", self._noting(torch.Stream.__enter__))
        for module in (torch.cuda, getattr(torch, "accelerator", None)):
            change = getattr(module, "set_stream", None)
            if change is not None:
                self._patches.set(module, "set_stream", self._noting(change))

    def _watch_making(self, cuda_stream: Any) -> None:
        make, note = cuda_stream.__new__, self._note

        @functools.wraps(make)
        def noted(*args: Any, **kwargs: Any) -> Any:
            try:
                stream = make(*args, **kwargs)
            except BaseException as error:
                leave_no_line(error)
                raise
            if "stream_id" not in kwargs:  # else it stands for one that is there, such as the current one
                note(stream)
            return stream

        self._patches.set(cuda_stream, "__new__", staticmethod(noted))

    def _noting(self, change: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that makes its first argument the current stream, and notes it."""
        is_compiling, note = self._torch.compiler.is_compiling, self._note

        @functools.wraps(change)
        def call(*args: Any, **kwargs: Any) -> Any:
            if is_compiling():
                return change(*args, **kwargs)
            try:
                changed = change(*args, **kwargs)
            except BaseException as error:
                leave_no_line(error)
                raise
            note(args[0] if args else kwargs.get("stream"))
            return changed

        return call

    def _note(self, stream: Any) -> None:
        """Remember the device of a stream, unless it is the default one or none."""
        if stream is not None and stream.stream_id and stream.device.type == "cuda":
            self._devices.add(stream.device_index)

    def remove(self) -> None:
        """Watch nothing."""
        self._static.restore()
        self._patches.restore()

    def settle(self) -> None:
        """Wait for all work on the devices on which the script has streams."""
        if self._devices and not self._torch.cuda.is_current_stream_capturing():
            for device in self._devices:
                self._torch.cuda.synchronize(device)
