"""Writing while training goes on: a copy in memory, and a thread that writes it."""

from __future__ import annotations

import dataclasses
import sys
import threading
from typing import TYPE_CHECKING

import torch

from samebits.checkpoint.collection import Collection
from samebits.errors import SamebitsError

if TYPE_CHECKING:
    from collections.abc import Callable

    from samebits.checkpoint.entries import Entry


class Snapshots:
    """Copies of arrays in memory that is used again for the next ones of the same name, dtype and shape."""

    def __init__(self) -> None:
        self._buffers: dict[str, torch.Tensor] = {}

    def of(self, collection: Collection) -> Collection:
        """The same, with the contents of this moment, in memory of its own until the next call.

        Arrays on a GPU are copied to memory that it can write to by itself, all at once.
        """
        kept = {}
        devices = set()
        for entry in collection.entries:
            buffer = self._buffers.get(entry.name)
            if buffer is None or buffer.dtype != entry.tensor.dtype or buffer.shape != entry.tensor.shape:
                buffer = _buffer_for(entry.tensor)
            with torch.no_grad():
                buffer.copy_(entry.tensor, non_blocking=buffer.is_pinned())
            if entry.tensor.is_cuda:
                devices.add(entry.tensor.device)
            kept[entry.name] = buffer
        for device in devices:
            torch.cuda.synchronize(device)
        self._buffers = kept
        entries = [_replaced(entry, kept[entry.name]) for entry in collection.entries]
        return Collection(collection.tree, entries)


def _buffer_for(tensor: torch.Tensor) -> torch.Tensor:
    return torch.empty(tensor.shape, dtype=tensor.dtype, device="cpu", pin_memory=tensor.is_cuda)


def _replaced(entry: Entry, tensor: torch.Tensor) -> Entry:
    return dataclasses.replace(entry, tensor=tensor)


class Background:
    """One job at a time in a thread; its error is raised by the next call."""

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._error: SamebitsError | None = None

    def start(self, job: Callable[[], None]) -> None:
        """Run a job, after `wait`.

        The thread is no daemon: the interpreter waits for it before it ends.
        """
        self.wait()
        self._thread = threading.Thread(target=self._run, args=(job,), name="samebits checkpoint")
        self._thread.start()

    def wait(self) -> None:
        """Wait for the job under way.

        Raises:
            SamebitsError: that the last job ended with.
        """
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        error, self._error = self._error, None
        if error is not None:
            raise error

    def _run(self, job: Callable[[], None]) -> None:
        try:
            job()
        except SamebitsError as error:
            self._error = error
        except Exception as error:  # noqa: BLE001 - it is raised by the next call
            text = f"the checkpoint could not be written: {type(error).__name__}: {error}"
            self._error = SamebitsError(text, slug="checkpoint-unwritable")
        if self._error is not None:  # also said now: there may be no next call
            print(f"samebits: {self._error}", file=sys.stderr)
