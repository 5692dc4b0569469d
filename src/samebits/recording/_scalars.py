"""The values of losses, reads and metrics given to a logger, written to a file."""

from __future__ import annotations

import functools
import hashlib
import json
import math
import os
import sys
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from samebits._runtime.frames import USER, FrameRanks, pass_on
from samebits._runtime.patching import Patches
from samebits.recording._recorder import is_tensor
from samebits.records.kinds import EventKind
from samebits.records.log import emptied
from samebits.records.notes import RecordedPart

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from samebits._runtime.imports import PostImport
    from samebits.recording._recorder import Recorder


@dataclass(frozen=True, slots=True)
class LoggerMethod:
    """A method that takes metrics.

    Args:
        module: the module that defines the class.
        owner: the class.
        name: the method.
        shape: `pair` for (name, value, step=None), `mapping` for (metrics, step=None).
        step: name of the argument for the step.
    """

    module: str
    owner: str
    name: str
    shape: str
    step: str


# Signatures as documented by each library; a class or method that a release lacks is passed over.
LOGGERS = (
    LoggerMethod("torch.utils.tensorboard.writer", "SummaryWriter", "add_scalar", "pair", "global_step"),
    LoggerMethod("tensorboardX.writer", "SummaryWriter", "add_scalar", "pair", "global_step"),
    LoggerMethod("lightning.pytorch.loggers.csv_logs", "CSVLogger", "log_metrics", "mapping", "step"),
    LoggerMethod("pytorch_lightning.loggers.csv_logs", "CSVLogger", "log_metrics", "mapping", "step"),
    LoggerMethod("wandb.sdk.wandb_run", "Run", "log", "mapping", "step"),
)
_FIRST = {"pair": ("tag", "key"), "mapping": ("metrics", "data")}


def numbers_of(
    method: LoggerMethod, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[dict[str, float], int | None]:
    """Return the metrics in a call that are numbers, and its step.

    Args:
        method: what was called.
        args: positional arguments, the object itself left out.
        kwargs: the others.
    """
    given = list(args)
    first = given.pop(0) if given else next((kwargs[n] for n in _FIRST[method.shape] if n in kwargs), None)
    if method.shape == "pair":
        second = given.pop(0) if given else kwargs.get("scalar_value", kwargs.get("value"))
        metrics = {str(first): second}
    else:
        metrics = dict(first) if isinstance(first, dict) else {}
    step = _number(given.pop(0) if given else kwargs.get(method.step))
    numbers = {str(name): number for name, value in metrics.items() if (number := _number(value)) is not None}
    return numbers, None if step is None or not math.isfinite(step) else int(step)


def _number(value: Any) -> float | None:
    if isinstance(value, bool | str | bytes) or value is None:
        return None
    try:
        return float(value.detach() if hasattr(value, "detach") else value)
    except (TypeError, ValueError, RuntimeError):  # an image, a table, a tensor of several elements
        return None


_HELD = 64  # values on their device, fetched together
_KINDS = {EventKind.LOSS: "backward", EventKind.READ: "read"}


@dataclass(frozen=True, slots=True)
class _Held:
    """A value that is not on the host yet."""

    row: list[Any]
    tensor: Any


class ValueLog:
    """Writes the values of a run to a file.

    Each line but the last is `[source, name, step, value]`. The source is `backward` or `read` (the name is
    the site, `train.py:31`) or `logged` (the name is the logger's). The last line is an object: `files`, the
    script's own source files with their SHA-256 (empty when the file was changed during the run); `saved`,
    the paths given to `torch.save`; `threads`, torch's number of threads.

    A value on an accelerator is copied there and fetched with 63 others, so that a backward pass does not
    wait for the device.

    Args:
        recorder: tells of losses and reads.
        path: the file.
    """

    def __init__(self, recorder: Recorder, path: str) -> None:
        self._recorder = recorder
        self._path = path
        self._patches = Patches()
        self._lock = threading.Lock()
        self._held: list[_Held] = []
        self._saved: set[str] = set()
        self._started = time.time()
        self._pid = os.getpid()
        self._broken = False
        self._file = emptied(path)

    def install(self, imports: PostImport) -> None:
        """Begin to log."""
        self._recorder.on_tensors.append(self._observe)
        imports.on_import("torch", self._watch_saves)
        for method in LOGGERS:
            imports.on_import(method.module, functools.partial(self._watch_logger, method))

    def remove(self) -> None:
        """Write what is left, and the last line; put back what was replaced."""
        self._recorder.on_tensors.remove(self._observe)
        self._patches.restore()
        with self._lock:
            self._flush()
            torch = sys.modules.get("torch")
            threads = getattr(torch, "get_num_threads", lambda: None)()
            last = {"files": self._source_files(), "saved": sorted(self._saved), "threads": threads}
            self._write(json.dumps(last) + "\n")

    def _observe(
        self, _seq: int, kind: EventKind, op: str, site: int | None, tensors: Sequence[tuple[int, Any]]
    ) -> None:
        source = _KINDS.get(kind)
        if source is None or op == "bool":
            return
        scalars = [tensor for _, tensor in tensors if _is_number(tensor)]
        if len(scalars) != 1 or len(tensors) != 1:
            return
        caller = self._recorder.sites.known(site)
        name = "" if caller is None else f"{os.path.basename(caller.file)}:{caller.line}"
        with self._lock:
            self._held.append(
                _Held([source, name, self._recorder.step], scalars[0].detach().clone().reshape(()))
            )
            if scalars[0].device.type == "cpu" or len(self._held) >= _HELD:
                self._flush()

    def _flush(self) -> None:
        lines = []
        for held in self._held:
            value = held.tensor.item() if is_tensor(held.tensor) else held.tensor
            lines.append(json.dumps([*held.row, value]) + "\n")
        self._held = []
        if lines:
            self._write("".join(lines))

    def _write(self, text: str) -> None:
        if self._broken or os.getpid() != self._pid:
            return
        try:
            self._file.append(text.encode())
        except OSError as error:  # not the script's
            pass_on(error)
            self._broken = True
            self._recorder.failures.add(RecordedPart.VALUES, error)

    def _watch_saves(self, torch: Any) -> None:
        if not hasattr(torch, "save"):
            return
        save, saved = torch.save, self._saved

        @functools.wraps(save)
        def noted_save(obj: Any, f: Any = None, *args: Any, **kwargs: Any) -> Any:
            if isinstance(f, str | os.PathLike):
                saved.add(os.path.abspath(os.fspath(f)))
            return save(obj, f, *args, **kwargs)

        self._patches.set(torch, "save", noted_save)

    def _watch_logger(self, method: LoggerMethod, module: Any) -> None:
        owner = getattr(module, method.owner, None)
        original = getattr(owner, method.name, None)
        if original is None:
            return

        @functools.wraps(original)
        def noted(logger: Any, *args: Any, **kwargs: Any) -> Any:
            if self._recorder.active:
                with self._recorder.quietly:
                    self._log(numbers_of(method, args, kwargs))
            return original(logger, *args, **kwargs)

        self._patches.set(owner, method.name, noted)

    def _log(self, metrics: tuple[dict[str, float], int | None]) -> None:
        numbers, step = metrics
        with self._lock:
            self._held += [_Held(["logged", name, step], value) for name, value in numbers.items()]
            self._flush()

    def _source_files(self) -> dict[str, str]:
        ranks = FrameRanks()
        files = {}
        for module in list(sys.modules.values()):
            path = getattr(module, "__file__", None)
            if not isinstance(path, str) or not path.endswith(".py") or not os.path.isfile(path):
                continue  # torch has modules whose file is a bare name
            if ranks.rank_of_file(path) == USER:
                files[os.path.abspath(path)] = self._hash(path)
        return files

    def _hash(self, path: str) -> str:
        try:
            if os.stat(path).st_mtime >= self._started:
                return ""
            with open(path, "rb") as file:
                return hashlib.sha256(file.read()).hexdigest()
        except OSError as error:
            pass_on(error)
            return ""


def _is_number(tensor: Any) -> bool:
    return (
        getattr(tensor, "numel", lambda: 0)() == 1
        and not tensor.is_complex()
        and str(tensor.dtype) != "torch.bool"
        and str(tensor.layout) == "torch.strided"
    )
