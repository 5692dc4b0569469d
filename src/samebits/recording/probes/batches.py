"""Batches that a DataLoader hands to the training loop."""

from __future__ import annotations

import dataclasses
import functools
from collections import deque
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from samebits._runtime.builtin_proxies import leave_no_line, unseen
from samebits._runtime.frames import calling_frame, pass_on
from samebits._runtime.patching import Patches
from samebits._torch.loaders import (
    LOADER_NEXT_INDEX,
    LOADER_RESET,
    loader_iterator_class,
    loader_iterator_classes,
)
from samebits.digest import digest_bytes
from samebits.recording._recorder import describe, is_tensor, recordable
from samebits.recording.naming import LOADER_GENERATOR
from samebits.records.events import TensorInfo
from samebits.records.kinds import EventKind, Role
from samebits.records.notes import RecordedPart

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import FrameType

    from samebits.recording._recorder import Recorder
    from samebits.recording.probes.state_log import StateLog

_DEPTH = 6
_PLAIN = (int, float, str, bytes, bool, complex)


class BatchProbe:
    """Records a `batch` event for each batch of any DataLoader.

    Args:
        recorder: where events go.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._patches = Patches()

    def install(self, torch: Any) -> None:  # noqa: ARG002 - all probes are installed alike
        """Watch the iterators of DataLoaders."""
        iterator = loader_iterator_class()
        if iterator is None:
            return
        recorder, fetch = self._recorder, iterator.__next__

        @functools.wraps(fetch)
        def recorded_next(loader: Any) -> Any:
            try:
                batch = fetch(loader)
            except BaseException as error:
                leave_no_line(error)
                raise
            if recorder.active:
                with recorder.recording(RecordedPart.BATCH):
                    for listener in recorder.before_batch:
                        listener(loader, calling_frame())
                    _record_batch(recorder, batch, calling_frame())
            return batch

        self._patches.set(iterator, "__next__", unseen(recorded_next))

    def remove(self) -> None:
        """Watch nothing."""
        self._patches.restore()


def _record_batch(recorder: Recorder, batch: Any, frame: FrameType) -> None:
    """Record one batch: its tensors by position, everything else in one digest."""
    flat = type(batch) in (list, tuple) and all(map(is_tensor, batch))
    leaves = [(str(n), part) for n, part in enumerate(batch)] if flat else list(leaves_of(batch))
    tensors = [(name, leaf) for name, leaf in leaves if is_tensor(leaf)]
    plain = [(name, leaf) for name, leaf in leaves if not is_tensor(leaf)]
    values = [tensor for _, tensor in tensors]
    if not recordable(values):
        return
    site = recorder.sites.find(frame)
    substituter = recorder.substituter
    matches = [] if substituter is None else substituter.matches(EventKind.BATCH, "DataLoader", site)
    for match in matches:
        match.replace(dict(enumerate(values)))
    layout, digests = recorder.observe(Role.VALUE, tuple([name for name, _ in tensors]), values)
    if plain:
        infos = tuple(describe(Role.VALUE, name, tensor) for name, tensor in tensors)
        layout = recorder.writer.layout((*infos, TensorInfo(Role.VALUE, "others", "python", (len(plain),))))
        digests += digest_bytes("\n".join(f"{name}={_text(leaf)}" for name, leaf in plain).encode())
    seq = recorder.event(EventKind.BATCH, "DataLoader", site, layout, digests, values)
    if substituter is not None:
        substituter.recorded(seq, matches)


def leaves_of(value: Any, name: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Yield (position, leaf) of the tensors, arrays and plain values in nested containers."""
    if is_tensor(value) or isinstance(value, _PLAIN) or _is_array(value):
        yield name or "0", value
        return
    if depth >= _DEPTH or value is None:
        return
    try:
        items = _items(value)
    except Exception as error:  # noqa: BLE001 - code of the user's own, which the script itself may never call
        pass_on(error)
        return
    for key, item in items:
        yield from leaves_of(item, f"{name}.{key}" if name else str(key), depth + 1)


def _is_array(value: Any) -> bool:
    """Tell whether a value of NumPy has bytes of its own, not addresses of objects."""
    return type(value).__module__ == "numpy" and not getattr(
        getattr(value, "dtype", None), "hasobject", False
    )


def _items(value: Any) -> list[tuple[Any, Any]]:
    if type(value).__module__ == "numpy":
        return list(enumerate(value.ravel().tolist()))
    if isinstance(value, Mapping):
        return list(value.items())
    if isinstance(value, (list, tuple)):
        return list(enumerate(value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [(field.name, getattr(value, field.name)) for field in dataclasses.fields(value)]
    if callable(getattr(value, "to_dict", None)):  # batches of graph libraries
        converted = value.to_dict()
        return list(converted.items()) if isinstance(converted, Mapping) else []
    # Objects of the user's own, such as a batch with a `pin_memory` method.
    return sorted(vars(value).items()) if hasattr(value, "__dict__") and not callable(value) else []


def _text(leaf: Any) -> str:
    if hasattr(leaf, "tobytes"):
        return f"{leaf.dtype}{leaf.shape}{digest_bytes(leaf.tobytes()).hex()}"
    return repr(leaf)


_MOST_INDICES = 4096  # of one batch
_SHORT = 8


class _Pass:
    """One iterator of a DataLoader."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.batches = 0
        self.waiting: deque[Any] = deque()  # samples that were asked for and not given yet


class BatchLog:
    """Logs passes over the data and their batches.

    The samples that a worker is asked for are known when it is asked, and batches come in that order. So each
    batch has the samples that were asked for first. With `in_order=False` that does not hold, and they are
    left out.

    Args:
        recorder: tells of the tensors in a batch.
        log: where lines go.
        generators: gives the states of the global generators.

    Attributes:
        step: the number of optimizer steps so far.
    """

    def __init__(self, recorder: Recorder, log: StateLog, generators: Callable[[], dict[str, str]]) -> None:
        self._recorder, self._log, self._generators = recorder, log, generators
        self.step = 0
        self._passes: WeakKeyDictionary[Any, _Pass] = WeakKeyDictionary()
        self._counts: dict[Any, int] = {}
        self._current: _Pass | None = None
        self._indices: Any = None
        self._patches = Patches()

    def install(self, torch: Any) -> None:  # noqa: ARG002 - all probes are installed alike
        """Watch the iterators of DataLoaders."""
        iterator = loader_iterator_class()
        if iterator is None:
            return
        self._patches.set(iterator, "__init__", self._noted_init(iterator.__init__))
        self._patches.set(iterator, "__next__", self._noted_next(iterator.__next__))
        for kind in loader_iterator_classes():
            original = vars(kind).get(LOADER_NEXT_INDEX)
            if original is not None:
                self._patches.set(kind, LOADER_NEXT_INDEX, self._noted_index(original))
            original = vars(kind).get(LOADER_RESET)
            if original is not None and kind is not iterator:
                self._patches.set(kind, LOADER_RESET, self._noted_reset(original))
        self._recorder.on_tensors.append(self._observe)

    def remove(self) -> None:
        """Watch nothing."""
        self._patches.restore()
        if self._observe in self._recorder.on_tensors:
            self._recorder.on_tensors.remove(self._observe)

    def _noted_init(self, original: Any) -> Any:
        @functools.wraps(original)
        def init(iterator: Any, loader: Any, *args: Any, **kwargs: Any) -> None:
            if self._recorder.active:
                with self._recorder.recording(RecordedPart.STATE_LOG):
                    self._begin(iterator, loader)
            original(iterator, loader, *args, **kwargs)

        return init

    def _noted_reset(self, original: Any) -> Any:
        """Note each further pass of an iterator that has persistent workers."""

        @functools.wraps(original)
        def reset(iterator: Any, loader: Any, first_iter: bool = False) -> None:  # noqa: FBT001, FBT002 - torch's
            if not first_iter and self._recorder.active:
                with self._recorder.recording(RecordedPart.STATE_LOG):
                    self._begin(iterator, loader)
            original(iterator, loader, first_iter)

        return reset

    def _noted_index(self, original: Any) -> Any:
        @functools.wraps(original)
        def next_index(iterator: Any) -> Any:
            requested = original(iterator)
            known = self._passes.get(iterator)
            if known is not None:
                known.waiting.append(_plain_indices(requested))
            return requested

        return next_index

    def _noted_next(self, original: Any) -> Any:
        @functools.wraps(original)
        def next_batch(iterator: Any) -> Any:
            known = self._current = self._passes.get(iterator)
            try:
                batch = original(iterator)  # records the batch, which `_observe` is told of
            finally:
                self._current = None
            if known is not None:
                known.batches += 1
            return batch

        return next_batch

    def _begin(self, iterator: Any, loader: Any) -> None:
        """Log that a pass over the data begins."""
        dataset = loader.dataset
        # A loader may be made anew for each pass, with its data set.
        key = (self._recorder.sites.find(calling_frame(2)), type(dataset).__name__, dataset_size(dataset))
        number = self._counts[key] = self._counts.get(key, -1) + 1
        self._passes[iterator] = _Pass(number)
        generators = self._generators()
        if hasattr(loader.generator, "get_state"):
            with self._recorder.quietly:
                digest = self._recorder.digest_many([loader.generator.get_state()])
            generators[LOADER_GENERATOR] = digest[:_SHORT].hex()
        workers = int(getattr(loader, "num_workers", 0) or 0)
        self._log.write("pass", step=self.step, number=number, generators=generators, workers=workers)

    def _observe(
        self, seq: int, kind: EventKind, _op: str, site: int | None, _tensors: Sequence[tuple[int, Any]]
    ) -> None:
        if kind != EventKind.BATCH:
            return
        known, where = self._current, self._recorder.sites.known(site)
        site_fields = None if where is None else [where.file, where.line, where.function]
        fields: dict[str, Any] = {"pass": None, "number": None, "indices": None}
        if known is not None:
            indices = known.waiting.popleft() if known.waiting else None
            fields = {"pass": known.number, "number": known.batches, "indices": indices}
        self._log.write("batch", step=self.step, seq=seq, site=site_fields, **fields)


def dataset_size(dataset: Any) -> int | None:
    """Return the length of a dataset; None for one that has none."""
    try:
        return len(dataset)
    except Exception as error:  # noqa: BLE001 - code of the user's own; an iterable data set has none
        pass_on(error)
        return None


def _plain_indices(requested: Any) -> list[Any] | None:
    """Return the numbers of the samples that a loader asks for; None where they are not numbers."""
    listed = [requested] if type(requested) is int else requested
    if not isinstance(listed, (list, tuple)) or len(listed) > _MOST_INDICES:
        return None
    try:
        numbers = [int(index) for index in listed]
    except (TypeError, ValueError):
        return None
    return numbers
