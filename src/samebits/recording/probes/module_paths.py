"""Which module is being executed."""

from __future__ import annotations

import functools
import threading
from typing import TYPE_CHECKING, Any

from samebits.hooks.patching import Patches

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
        self._paths: dict[int, str] = {}
        self._learned_version = -1

    def install(self, torch: Any) -> None:
        """Watch calls of modules."""
        local, call, registry = self._local, torch.nn.Module.__call__, self._registry

        @functools.wraps(call)
        def followed_call(module: Any, /, *args: Any, **kwargs: Any) -> Any:
            try:
                stack = local.stack
            except AttributeError:
                stack = local.stack = []
            if not stack and not registry.has(module):
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

    def stack(self) -> list[Any]:
        """The modules that this thread executes, outermost first; the list changes as they are called."""
        try:
            found: list[Any] = self._local.stack
        except AttributeError:
            found = self._local.stack = []
        return found

    def text(self, module: Any) -> int:
        """Text id of the path of a module."""
        if self._learned_version != self._registry.version:
            self._learn()
        found = self._texts.get(id(module))
        if found is None:
            found = self._texts[id(module)] = self._recorder.writer.text(type(module).__name__)
        return found

    def path(self, module: Any) -> str:
        """The path of a module; the name of its class where it has none."""
        if self._learned_version != self._registry.version:
            self._learn()
        return self._paths.get(id(module)) or type(module).__name__

    def _learn(self) -> None:
        self._learned_version = self._registry.version
        text = self._recorder.writer.text
        self._paths = {id(m): path or type(m).__name__ for path, m in self._registry.named()}
        self._texts = {identity: text(path) for identity, path in self._paths.items()}
