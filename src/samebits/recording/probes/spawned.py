"""Ranks that a script starts itself, which are not recorded."""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, Any

from samebits.hooks.patching import Patches
from samebits.recording.guard import UNRECORDED

if TYPE_CHECKING:
    from samebits.recording.recorder import Recorder

_HOMES = ("torch.multiprocessing.spawn", "torch.multiprocessing")
_NAME = "start_processes"
_ADVICE = (
    "and what they do is not recorded: start the ranks by `torchrun --nproc-per-node N -m samebits run` for "
    "a record of each"
)


class SpawnProbe:
    """Notes that `torch.multiprocessing.spawn` or `start_processes` was called.

    Args:
        recorder: says whether anything is recorded.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._patches = Patches()
        self._processes = 0

    def install(self, torch: Any) -> None:  # noqa: ARG002 - all probes are installed alike
        """Watch the functions, in all modules that have them."""
        for home in _HOMES:
            module = sys.modules.get(home)
            if hasattr(module, _NAME):
                self._patches.set(module, _NAME, self._counted(getattr(module, _NAME)))

    def remove(self) -> None:
        """Watch nothing."""
        self._patches.restore()

    def notes(self) -> list[str]:
        """That there were such processes."""
        if not self._processes:
            return []
        return [f"{UNRECORDED} ({self._processes}), {_ADVICE}"]

    def _counted(self, start: Any) -> Any:
        @functools.wraps(start)
        def counted(function: Any, args: Any = (), nprocs: int = 1, *more: Any, **options: Any) -> Any:
            if self._recorder.active:
                self._processes += nprocs
            return start(function, args, nprocs, *more, **options)

        return counted
