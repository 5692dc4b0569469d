"""Streams that the script makes on a GPU: what they write may not be there when a step is closed."""

from __future__ import annotations

import functools
from typing import Any

from samebits._runtime.builtin_proxies import leave_no_line
from samebits._runtime.patching import Patches


class StreamProbe:
    """Notes on which devices the script has made streams of its own.

    Digests are computed on the current stream, after all that is queued there. Work of another stream, such
    as a copy of the weights that is made beside the training, may still go on: whether the digest is of what
    was there before or after would be chance. Streams of C++ code, such as those of NCCL, are not noted.
    """

    def __init__(self) -> None:
        self._patches = Patches()
        self._devices: set[int] = set()
        self._cuda: Any = None

    def install(self, torch: Any) -> None:
        """Watch `torch.cuda.Stream`."""
        self._cuda, make = torch.cuda, torch.cuda.Stream.__new__
        devices = self._devices

        @functools.wraps(make)
        def noted(*args: Any, **kwargs: Any) -> Any:
            try:
                stream = make(*args, **kwargs)
            except BaseException as error:
                leave_no_line(error)
                raise
            if "stream_id" not in kwargs:  # else it stands for one that is there, such as the current one
                devices.add(stream.device_index)
            return stream

        self._patches.set(torch.cuda.Stream, "__new__", staticmethod(noted))

    def remove(self) -> None:
        """Watch nothing."""
        self._patches.restore()

    def settle(self) -> None:
        """Wait for all work on the devices on which the script has made streams."""
        if self._devices and not self._cuda.is_current_stream_capturing():
            for device in self._devices:
                self._cuda.synchronize(device)
