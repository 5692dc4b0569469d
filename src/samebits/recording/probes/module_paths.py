"""Which module is being executed."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from samebits.recording.patching import Patches

if TYPE_CHECKING:
    from samebits.recording.probes.modules import ModuleRegistry
    from samebits.recording.recorder import Recorder


class ModulePaths:
    """Follows module calls, per thread.

    Args:
        recorder: where paths are interned.
        registry: the modules of the run.
    """

    def __init__(self, recorder: Recorder, registry: ModuleRegistry) -> None:
        self._recorder = recorder
        self._registry = registry
        self._patches = Patches()
        self._local = threading.local()
        self._texts: dict[int, int] = {}
        self._learned_version = -1
        self._empty = recorder.writer.text("")

    def install(self, torch: Any) -> None:
        """Watch calls of modules."""
        local, call, registry = self._local, torch.nn.Module.__call__, self._registry

        def followed_call(module: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                stack = local.stack
            except AttributeError:
                stack = local.stack = []
            if not stack:
                registry.note_tree(module)
            stack.append(module)
            try:
                return call(module, *args, **kwargs)
            finally:
                stack.pop()

        self._patches.set(torch.nn.Module, "__call__", followed_call)

    def remove(self) -> None:
        """Watch nothing."""
        self._patches.restore()

    def current(self) -> int:
        """Text id of the path of the module that this thread executes; of the empty text outside modules."""
        stack = getattr(self._local, "stack", None)
        if not stack:
            return self._empty
        if self._learned_version != self._registry.version:
            self._learn()
        module = stack[-1]
        found = self._texts.get(id(module))
        if found is None:
            found = self._texts[id(module)] = self._recorder.writer.text(type(module).__name__)
        return found

    def _learn(self) -> None:
        self._learned_version = self._registry.version
        text = self._recorder.writer.text
        self._texts = {id(m): text(path or type(m).__name__) for path, m in self._registry.named()}
