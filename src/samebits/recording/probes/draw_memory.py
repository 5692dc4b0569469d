"""Arrays of NumPy that are made without being filled: they hold whatever was in that memory before."""

from __future__ import annotations

import ctypes
import hashlib
from typing import TYPE_CHECKING, Any

from samebits.recording.probes.draw_functions import watched

if TYPE_CHECKING:
    from types import FrameType

    from samebits.hooks.patching import Patches
    from samebits.recording.probes.draw_log import DrawLog

_MAKERS = ("empty", "empty_like")
_MOST = 1 << 16  # bytes that are looked at: a large block comes from the system, which hands out zeros


def watch_unwritten(numpy: Any, patches: Patches, log: DrawLog) -> None:
    """Record what `numpy.empty` and `empty_like` give to the script, and to libraries on its behalf.

    Args:
        numpy: the module.
        patches: undo the replacements.
        log: told of draws.
    """
    for name in _MAKERS:
        function = getattr(numpy, name, None)
        if function is not None:
            patches.set(numpy, name, _making(numpy, function, f"numpy.{name}", log))


def _making(numpy: Any, function: Any, op: str, log: DrawLog) -> Any:
    def note(made: Any, frame: FrameType, _args: tuple[Any, ...], _named: dict[str, Any]) -> None:
        if not log.active or log.asker(frame, op) is None:
            return
        if isinstance(made, numpy.ndarray) and made.nbytes and not made.dtype.hasobject:
            log.taken(op, frame, _contents(made))

    return watched(function, note)


def _contents(made: Any) -> bytes:
    """A digest of its memory, which NumPy is not asked for: that would change what its next array holds."""
    n_bytes = min(made.nbytes, _MOST)
    memory = (ctypes.c_char * n_bytes).from_address(made.__array_interface__["data"][0])
    return hashlib.blake2b(memory, digest_size=16).digest()
