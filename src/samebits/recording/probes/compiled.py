"""Whether the script asks for compiled code."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from samebits.hooks.patching import Patches

if TYPE_CHECKING:
    from samebits.recording.recorder import Recorder


class CompileProbe:
    """Notes calls of `torch.compile` and `nn.Module.compile`.

    Args:
        recorder: told of it.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._patches = Patches()

    def install(self, torch: Any) -> None:
        """Watch."""
        for owner in (torch, torch.nn.Module):
            original = getattr(owner, "compile", None)
            if original is not None:
                self._patches.set(owner, "compile", self._noted(original))

    def remove(self) -> None:
        """Watch nothing."""
        self._patches.restore()

    def _noted(self, original: Any) -> Any:
        recorder = self._recorder

        @functools.wraps(original)
        def compile_(*args: Any, **kwargs: Any) -> Any:
            recorder.seen.compiler = True
            return original(*args, **kwargs)

        return compile_
