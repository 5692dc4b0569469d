"""A folder of checkpoints, which a thread can write from copies while training goes on."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import sys
import threading
import warnings
from typing import TYPE_CHECKING, Any

import torch

from samebits.checkpoint._arrays import Entry
from samebits.checkpoint._atomic import remove_abandoned
from samebits.checkpoint._container import Collection, collect, write
from samebits.checkpoint._stateful import path_text
from samebits.checkpoint.interface import Loaded, read, restore
from samebits.errors import SamebitsError, SamebitsWarning

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from samebits.checkpoint._container import Contents


class Snapshots:
    """Copies of arrays, in buffers that are reused for arrays of the same name, dtype and shape."""

    def __init__(self) -> None:
        self._buffers: dict[str, torch.Tensor] = {}

    def of(self, collection: Collection) -> Collection:
        """Copy the present contents of a collection; the copies are valid until the next call.

        Arrays on a GPU are copied asynchronously to pinned memory.
        """
        buffers = {}
        devices = {entry.tensor.device for entry in collection.entries if entry.tensor.is_cuda}
        with torch.no_grad():
            for entry in collection.entries:
                like = entry.tensor
                buffer = self._buffers.get(entry.name)
                if buffer is None or buffer.dtype != like.dtype or buffer.shape != like.shape:
                    buffer = torch.empty(like.shape, dtype=like.dtype, device="cpu", pin_memory=like.is_cuda)
                buffers[entry.name] = buffer.copy_(like, non_blocking=like.is_cuda)
        for device in devices:
            torch.cuda.synchronize(device)
        self._buffers = buffers
        entries = [Entry(one.name, buffers[one.name], one.shape, one.dtype) for one in collection.entries]
        return Collection(collection.tree, entries)


class Background:
    """One job at a time in a thread; the next call raises its error."""

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._error: SamebitsError | None = None

    def start(self, job: Callable[[], None]) -> None:
        """Run a job, after `wait`.

        The thread is no daemon: the interpreter waits for it before it exits.
        """
        self.wait()
        self._thread = threading.Thread(target=self._run, args=(job,), name="samebits checkpoint")
        self._thread.start()

    def wait(self) -> None:
        """Wait for the running job.

        Raises:
            SamebitsError: the error of the last job.
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
        except Exception as error:  # noqa: BLE001 - the next call raises it
            text = f"the checkpoint could not be written: {type(error).__name__}: {error}"
            self._error = SamebitsError(text, slug="checkpoint-unwritable")
        if self._error is not None:  # also printed now: there may be no next call
            print(f"samebits: {self._error}", file=sys.stderr)


_NAME = re.compile(r"step-([0-9]+)\.safetensors")


class CheckpointFolder:
    """Checkpoints of one training run: `step-100.safetensors` and so on in a folder.

    Args:
        path: the folder; it is made if it does not exist.
        save_every: `save_if_due` saves once in this many steps; None leaves saving to calls of `save`.
        keep_last: how many checkpoints stay; None keeps all. With 1 there is none to fall back to.
        asynchronous: whether to write in the background, from a copy in memory, while training goes on. At
            most one checkpoint is being written: the next save waits for it, and raises its error.

    Raises:
        SamebitsError: a number is invalid, `checkpoint-folder`; the folder cannot be made,
            `checkpoint-unwritable`.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        save_every: int | None = None,
        keep_last: int | None = 2,
        asynchronous: bool = False,
    ) -> None:
        self.path = path_text(path)
        self._save_every = _positive("save_every", save_every)
        self._keep_last = _positive("keep_last", keep_last)
        self._background = Background() if asynchronous else None
        self._snapshots = Snapshots()
        self._known: set[int] = set()
        self._prepare()

    def __enter__(self) -> CheckpointFolder:  # noqa: PYI034 - `Self` is of Python 3.11
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.wait()
        else:
            with contextlib.suppress(SamebitsError):  # it is on stderr; the script's own error counts
                self.wait()

    def steps(self) -> list[int]:
        """Return the steps that have checkpoints, ascending."""
        try:
            names = os.listdir(self.path)
        except FileNotFoundError:
            return []
        matches = [_NAME.fullmatch(name) for name in names]
        return sorted(int(match[1]) for match in matches if match and match[0] == _file_name(int(match[1])))

    def file(self, step: int) -> str:
        """Return the path of the checkpoint of a step."""
        return os.path.join(self.path, _file_name(step))

    def save_if_due(self, *, step: int, epoch: int | None = None, **parts: Any) -> bool:
        """Save when `step` is a multiple of `save_every`.

        Args:
            step: how many steps are done.
            epoch: the number of the epoch; see `samebits.checkpoint.save`.
            parts: what to save.

        Returns:
            True if it was saved.
        """
        if self._save_every is None or _checked(step) % self._save_every:
            return False
        self.save(step=step, epoch=epoch, **parts)
        return True

    def save(self, *, step: int, epoch: int | None = None, **parts: Any) -> None:
        """Save, then remove checkpoints beyond `keep_last`.

        Args:
            step: how many steps are done, from 0.
            epoch: the number of the epoch; see `samebits.checkpoint.save`.
            parts: what to save.

        Raises:
            SamebitsError: as `samebits.checkpoint.save`; the folder holds newer checkpoints of another run,
                `checkpoint-newer`; in asynchronous mode, the error of the checkpoint before.
        """
        _checked(step)
        if self._background is not None:
            self._background.wait()
        self._refuse_newer(step)
        collection = collect(step, epoch, parts)
        if self._background is None:
            self._write(step, collection)
        else:
            snapshot = self._snapshots.of(collection)
            self._background.start(functools.partial(self._write, step, snapshot))

    def load(
        self, *, strict: bool = True, map_location: Any = None, rng: bool = True, **parts: Any
    ) -> Loaded | None:
        """Load the newest intact checkpoint.

        One that is torn, altered or unreadable is skipped with a warning.

        Args:
            strict: see `samebits.checkpoint.load`.
            map_location: the device for tensors outside modules.
            rng: whether to restore the RNG sources.
            parts: the objects that load the states.

        Returns:
            None when there is no checkpoint: training starts from the beginning.

        Raises:
            SamebitsError: as `samebits.checkpoint.load`; if all checkpoints are damaged, that of the newest.
        """
        self.wait()
        newest = self._newest()
        if newest is None:
            return None
        return restore(*newest, parts, strict=strict, map_location=map_location, rng=rng)

    def wait(self) -> None:
        """Wait until the last saved checkpoint is on the disk.

        Raises:
            SamebitsError: it could not be written.
        """
        if self._background is not None:
            self._background.wait()

    def _prepare(self) -> None:
        try:
            os.makedirs(self.path, exist_ok=True)
            with contextlib.suppress(PermissionError):
                remove_abandoned(self.path, _NAME)
        except OSError as error:
            message = f"the folder {self.path} cannot be used: {error.strerror or error}"
            raise SamebitsError(message, slug="checkpoint-unwritable") from error

    def _newest(self) -> tuple[str, Contents] | None:
        """Return path and contents of the newest intact checkpoint."""
        first: SamebitsError | None = None
        for step in reversed(self.steps()):
            self._known.add(step)
            try:
                contents = read(self.file(step))
            except SamebitsError as error:
                first = first or error
                warnings.warn(str(error), SamebitsWarning, stacklevel=3)
            else:
                return self.file(step), contents
        if first is not None:
            raise first
        return None

    def _refuse_newer(self, step: int) -> None:
        """Refuse to save below a later step that this run did not load: `load` would take that one."""
        newer = [other for other in self.steps() if other > step and other not in self._known]
        if newer:
            message = (
                f"{self.path} holds {_file_name(newer[-1])}, which this run neither loaded nor saved, and "
                f"step {step} is to be saved. Load it first to go on from there, or give another folder."
            )
            raise SamebitsError(message, slug="checkpoint-newer")

    def _write(self, step: int, collection: Collection) -> None:
        write(self.file(step), collection)
        self._known.add(step)
        if self._keep_last is not None:
            self._remove_oldest(step, self._keep_last)

    def _remove_oldest(self, written: int, keep: int) -> None:
        """Remove all but the newest; the one just written always stays, and newer ones do not count."""
        older = [step for step in self.steps() if step < written]
        for step in older[: max(0, len(older) + 1 - keep)]:
            with contextlib.suppress(OSError):
                os.unlink(self.file(step))


def _file_name(step: int) -> str:
    return f"step-{step}.safetensors"


def _checked(step: int) -> int:
    """Return a step, checked.

    Raises:
        SamebitsError: it is no step; `checkpoint-folder`.
    """
    if type(step) is not int or step < 0:
        message = f"the step is {step!r}; expected a whole number from 0"
        raise SamebitsError(message, slug="checkpoint-folder")
    return step


def _positive(name: str, value: int | None) -> int | None:
    if value is None or (type(value) is int and value > 0):
        return value
    message = f"{name} is {value!r}; expected a whole number from 1, or None"
    raise SamebitsError(message, slug="checkpoint-folder")
