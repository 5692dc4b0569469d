"""What a DataLoader hands to the training loop."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from samebits.digest import digest_bytes
from samebits.hooks.frames import calling_frame
from samebits.hooks.interruptions import pass_on
from samebits.hooks.patching import Patches
from samebits.hooks.standing import leave_no_line, unseen
from samebits.recording.events import TensorInfo
from samebits.recording.notes import RecordedPart
from samebits.recording.recorder import describe, is_tensor, recordable
from samebits.torch_loaders import loader_iterator_class

if TYPE_CHECKING:
    from types import FrameType

    from samebits.recording.recorder import Recorder

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
                    record_batch(recorder, batch, calling_frame())
            return batch

        self._patches.set(iterator, "__next__", unseen(recorded_next))

    def remove(self) -> None:
        """Watch nothing."""
        self._patches.restore()


def record_batch(recorder: Recorder, batch: Any, frame: FrameType) -> None:
    """Record one batch: its tensors by position, everything else in one digest."""
    leaves = list(leaves_of(batch))
    tensors = [(name, leaf) for name, leaf in leaves if is_tensor(leaf)]
    plain = [(name, leaf) for name, leaf in leaves if not is_tensor(leaf)]
    values = [tensor for _, tensor in tensors]
    if not recordable(values):
        return
    site = recorder.sites.find(frame)
    substituter = recorder.substituter
    turns = [] if substituter is None else substituter.turns("batch", "DataLoader", site)
    for turn in turns:
        turn.replace(dict(enumerate(values)))
    layout, digests = recorder.look("value", tuple([name for name, _ in tensors]), values)
    if plain:
        infos = tuple(describe("value", name, tensor) for name, tensor in tensors)
        layout = recorder.writer.layout((*infos, TensorInfo("value", "others", "python", (len(plain),))))
        digests += digest_bytes("\n".join(f"{name}={_text(leaf)}" for name, leaf in plain).encode())
    seq = recorder.event("batch", "DataLoader", site, layout, digests, values)
    if substituter is not None:
        substituter.recorded(seq, turns)


def leaves_of(value: Any, name: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """(position, leaf) of the tensors, arrays and plain values in nested containers."""
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
    """Whether a value of NumPy has bytes of its own, not addresses of objects."""
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
