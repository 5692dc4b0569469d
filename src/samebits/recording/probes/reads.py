"""Values that leave torch: `item`, `tolist`, `numpy`, conversions, printing."""

from __future__ import annotations

import functools
import os
import sys
from typing import TYPE_CHECKING, Any

from samebits._runtime.builtin_proxies import leave_no_line, unseen
from samebits._runtime.frames import calling_frame
from samebits._runtime.patching import Patches
from samebits.recording._recorder import is_tensor, recordable
from samebits.recording.probes.batches import leaves_of
from samebits.recording.probes.file_effects import SAVED
from samebits.records.kinds import EventKind
from samebits.records.notes import RecordedPart

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from samebits.recording._recorder import Recorder

_READ = EventKind.READ  # looked up once: a script may read in its innermost loop
READS = {
    "item": "item", "tolist": "tolist", "numpy": "numpy", "__array__": "numpy",
    "__repr__": "repr", "__format__": "format",
}  # fmt: skip
_CONVERSIONS = {
    "__bool__": "bool", "__float__": "float", "__int__": "int", "__index__": "int", "__complex__": "complex",
}  # fmt: skip
_TASK_TEXTS = "asyncio.base_futures"


class ReadProbe:
    """Records a `read` event when code outside torch takes a tensor's value.

    A read is not a step: a script may read a thousand values before it begins to train. Only in a run that is
    known never to train may each read count as one (`count_reads`).

    Args:
        recorder: where events go.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._patches = Patches()

    def install(self, torch: Any) -> None:
        """Watch the methods of `torch.Tensor`."""
        for name, op in (READS | _CONVERSIONS).items():
            original = getattr(torch.Tensor, name, None)
            if original is not None:
                read = self._recorded(original, op)
                watched = _Conversion(original, read, self._record, op) if name in _CONVERSIONS else read
                self._patches.set(torch.Tensor, name, watched)

    def remove(self) -> None:
        """Watch nothing."""
        self._patches.restore()

    def _recorded(self, original: Callable[..., Any], op: str) -> Callable[..., Any]:
        record = self._record

        @functools.wraps(original)
        def read(tensor: Any, /, *args: Any, **kwargs: Any) -> Any:
            record(tensor, op, calling_frame())
            try:
                return original(tensor, *args, **kwargs)
            except BaseException as error:
                leave_no_line(error)
                raise

        patched: Callable[..., Any] = unseen(read)
        return patched

    def _record(self, tensor: Any, op: str, frame: FrameType) -> None:
        recorder = self._recorder
        # Inside torch the same methods serve its own bookkeeping.
        if not recorder.active or recorder.sites.is_own(frame) or (op == "repr" and _of_a_task(frame)):
            return
        with recorder.recording(RecordedPart.READ):
            if not recordable((tensor,)):
                return
            recorder.value(_READ, op, frame, (tensor,), ("",))
            trains = recorder.seen.optimizer or recorder.seen.backward
            if recorder.settings.count_reads and recorder.counts and not trains:
                recorder.steps.close((), b"")


def _of_a_task(frame: FrameType | None) -> bool:
    """Tell whether a tensor is shown as part of a task or future of asyncio.

    `asyncio.run` makes such a text of its main task, with what the task returned, and nobody sees it.
    """
    if _TASK_TEXTS not in sys.modules:
        return False
    while frame is not None and frame.f_globals.get("__name__") != _TASK_TEXTS:
        frame = frame.f_back
    return frame is not None


class _Conversion:
    """Replaces a method that `float(tensor)` and the like look up and call at once; records the look-up.

    Torch's own method is called, so that no frame of samebits lies between it and the script: torch warns of
    the conversion of a tensor that requires grad, and a warning names the nearest frame.

    Args:
        original: the method.
        function: what the class itself shows for it.
        record: told of the tensor, the op and the frame.
        op: what reads are called.
    """

    def __init__(
        self,
        original: Any,
        function: Callable[..., Any],
        record: Callable[[Any, str, FrameType], None],
        op: str,
    ) -> None:
        self._original = original
        self._function = function
        self._record = record
        self._op = op

    def __get__(self, tensor: Any, owner: type[Any] | None = None) -> Any:
        if tensor is None:
            return self._function
        self._record(tensor, self._op, calling_frame())
        return self._original.__get__(tensor, owner)


class SaveProbe:
    """Records a `save` event for each `torch.save`, with the tensors found in the object.

    Text and numbers beside the tensors (a date, a run name) are not part of it.

    Args:
        recorder: where events go.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._patches = Patches()

    def install(self, torch: Any) -> None:
        """Watch `torch.save`."""
        recorder, save = self._recorder, torch.save

        @functools.wraps(save)
        def recorded_save(obj: Any, *args: Any, **kwargs: Any) -> Any:
            if recorder.active:
                with recorder.recording(RecordedPart.SAVE):
                    _record_save(recorder, obj, calling_frame())
                target = args[0] if args else kwargs.get("f")
                if isinstance(target, (str, os.PathLike)):  # compiled code opens it; Python tells nothing
                    sys.audit(SAVED, target)
            try:
                return save(obj, *args, **kwargs)
            except BaseException as error:
                leave_no_line(error)
                raise

        self._patches.set(torch, "save", recorded_save)
        self._patches.set(torch.serialization, "save", recorded_save)

    def remove(self) -> None:
        """Watch nothing."""
        self._patches.restore()


def _record_save(recorder: Recorder, obj: Any, frame: FrameType) -> None:
    """Record the tensors in an object that is about to be written."""
    held = obj.state_dict() if isinstance(obj, sys.modules["torch"].nn.Module) else obj
    tensors = [(name, leaf) for name, leaf in leaves_of(held) if is_tensor(leaf)]
    values = [tensor for _, tensor in tensors]
    if values and recordable(values):
        recorder.value(EventKind.SAVE, "torch.save", frame, values, tuple(name for name, _ in tensors))
