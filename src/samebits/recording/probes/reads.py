"""Values that leave torch: `item`, `tolist`, `numpy`, conversions, printing."""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, Any

from samebits.recording.patching import Patches
from samebits.recording.recorder import recordable

if TYPE_CHECKING:
    from collections.abc import Callable

    from samebits.recording.recorder import Recorder

READS = {
    "item": "item", "tolist": "tolist", "numpy": "numpy", "__array__": "numpy", "__bool__": "bool",
    "__float__": "float", "__int__": "int", "__index__": "int", "__complex__": "complex",
    "__repr__": "repr", "__format__": "format",
}  # fmt: skip


class ReadProbe:
    """Records a `read` event when code outside torch takes a tensor's value.

    In a script without optimizer and backward, each read is a step boundary.

    Args:
        recorder: where events go.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._patches = Patches()

    def install(self, torch: Any) -> None:
        """Watch the methods of `torch.Tensor`."""
        for name, op in READS.items():
            original = getattr(torch.Tensor, name, None)
            if original is not None:
                self._patches.set(torch.Tensor, name, self._recorded(original, op))

    def remove(self) -> None:
        """Watch nothing."""
        self._patches.restore()

    def _recorded(self, original: Callable[..., Any], op: str) -> Callable[..., Any]:
        recorder = self._recorder
        is_own = recorder.sites.is_own

        @functools.wraps(original)
        def read(tensor: Any, *args: Any, **kwargs: Any) -> Any:
            if recorder.active:
                frame = sys._getframe(1)
                # Inside torch the same methods serve its own bookkeeping.
                if not is_own(frame) and recordable((tensor,)):
                    recorder.value("read", op, frame, (tensor,), ("",))
                    if not (recorder.has_optimizer or recorder.has_backward):
                        recorder.boundary((), b"")
            return original(tensor, *args, **kwargs)

        return read
