"""Tensors that are written with `torch.save`."""

from __future__ import annotations

import functools
import os
import sys
from typing import TYPE_CHECKING, Any

from samebits.hooks.frames import calling_frame
from samebits.hooks.patching import Patches
from samebits.hooks.standing import leave_no_line
from samebits.recording.notes import RecordedPart
from samebits.recording.probes.batches import leaves_of
from samebits.recording.probes.effects import SAVED
from samebits.recording.recorder import is_tensor, recordable

if TYPE_CHECKING:
    from types import FrameType

    from samebits.recording.recorder import Recorder


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
                    record_save(recorder, obj, calling_frame())
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


def record_save(recorder: Recorder, obj: Any, frame: FrameType) -> None:
    """Record the tensors in an object that is about to be written."""
    held = obj.state_dict() if isinstance(obj, sys.modules["torch"].nn.Module) else obj
    tensors = [(name, leaf) for name, leaf in leaves_of(held) if is_tensor(leaf)]
    values = [tensor for _, tensor in tensors]
    if values and recordable(values):
        recorder.value("save", "torch.save", frame, values, tuple(name for name, _ in tensors))
