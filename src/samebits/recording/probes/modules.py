"""The modules that take part in a run, and their paths."""

from __future__ import annotations

import functools
import gc
import threading
import weakref
from itertools import chain
from typing import TYPE_CHECKING, Any

from samebits._runtime.patching import Patches

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from samebits.recording._recorder import Recorder


class ModuleRegistry:
    """Every `nn.Module` that lives, in order of creation."""

    def __init__(self) -> None:
        self.version = 0
        self.several_roots = False
        self.on_forget: Callable[[], None] = lambda: None
        self._holding: frozenset[int] = frozenset()
        self._modules: dict[int, weakref.ref[Any]] = {}
        self._older: list[weakref.ref[Any]] = []
        self._patches = Patches()

    def install(self, torch: Any) -> None:
        """Note modules from now on; those that exist already count once they take part."""
        module_class = torch.nn.Module
        init, set_state, note = module_class.__init__, module_class.__setstate__, self.note

        @functools.wraps(init)
        def noted_init(*args: Any, **kwargs: Any) -> None:
            if args:
                note(args[0])
            init(*args, **kwargs)

        @functools.wraps(set_state)
        def noted_set_state(module: Any, /, *args: Any, **kwargs: Any) -> None:
            note(module)
            set_state(module, *args, **kwargs)

        self._patches.set(module_class, "__init__", noted_init)
        self._patches.set(module_class, "__setstate__", noted_set_state)
        self._older = [weakref.ref(module) for module in instances(module_class)]

    def remove(self) -> None:
        """Note nothing from now on."""
        self._patches.restore()

    def note(self, module: Any) -> None:
        """Add a module."""
        key = id(module)
        self.version += 1

        def forget(_: Any) -> None:
            self._modules.pop(key, None)
            self.version += 1
            if key in self._holding:
                self.on_forget()

        self._modules[key] = weakref.ref(module, forget)

    def adopt(self, tensor: Any) -> bool:
        """Note the older model that holds a tensor; return whether there is one."""
        older = [module for module in (reference() for reference in self._older) if module is not None]
        owners = [module for module in older if _has_parameter(module, tensor)]
        if not owners:
            return False
        root = max(owners, key=lambda module: sum(1 for _ in module.modules()))
        self.note_tree(root)
        return True

    def has(self, module: Any) -> bool:
        """Tell whether a module is known."""
        known = self._modules.get(id(module))
        return known is not None and known() is module

    def note_tree(self, root: Any) -> None:
        """Add a module and those below it that are not known yet."""
        if not is_made(root):
            return
        for module in root.modules():
            if not self.has(module):
                self.note(module)

    def holds(self, tensor: Any) -> bool:
        """Tell whether a noted module has this tensor as a parameter of its own."""
        return any(tensor is held for module in self.alive() for held in vars(module)["_parameters"].values())

    def alive(self) -> list[Any]:
        """Return the modules that live and are fully made, in order of creation."""
        modules = [reference() for reference in list(self._modules.values())]
        return [module for module in modules if module is not None and is_made(module)]

    def named(self) -> Iterator[tuple[str, Any]]:
        """Yield (path, module) of every module below the roots that own tensors."""
        alive = self.alive()
        children = {id(child) for module in alive for child in vars(module)["_modules"].values()}
        roots = [m for m in alive if id(m) not in children and any(_own_tensors(sub) for sub in m.modules())]
        self._holding = frozenset(id(sub) for root in roots for sub in root.modules() if _own_tensors(sub))
        self.several_roots = len(roots) != 1
        prefixes = [""] if len(roots) == 1 else numbered(type(root).__name__ for root in roots)
        for prefix, root in zip(prefixes, roots, strict=True):
            for path, module in root.named_modules():
                if not is_made(module):
                    continue
                yield ".".join(part for part in (prefix, path) if part), module


def instances(kind: type[Any]) -> list[Any]:
    """Return the existing objects of a class without asking for their `__class__`, which proxies compute."""
    return [obj for obj in gc.get_objects() if issubclass(type(obj), kind)]


def is_made(module: Any) -> bool:
    """Tell whether a module holds what `nn.Module.__init__` gives it.

    If not, it has not run yet, or the class keeps it elsewhere: what `torch.jit.trace` returns has no
    `_parameters`.
    """
    own = vars(module)
    return "_modules" in own and "_parameters" in own and "_buffers" in own


def _has_parameter(module: Any, tensor: Any) -> bool:
    """Tell whether a tensor is among the parameters of a module; of one that is half made it is not."""
    try:
        return any(tensor is held for held in module.parameters())
    except AttributeError:  # it, or a module in it, was never or not yet given what `__init__` gives
        return False


def _own_tensors(module: Any) -> bool:
    if not is_made(module):
        return False
    own = vars(module)
    return any(t is not None for t in chain(own["_parameters"].values(), own["_buffers"].values()))


def numbered(names: Iterable[str], taken: Iterable[str] = ()) -> list[str]:
    """Return names that all differ: the second `weight` becomes `weight#2`.

    Args:
        names: the names.
        taken: names that others have already.
    """
    counts = dict.fromkeys(taken, 1)
    result = []
    for name in names:
        counts[name] = number = counts.get(name, 0) + 1
        result.append(name if number == 1 else f"{name}#{number}")
    return result


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
        self._own_paths: dict[int, str] = {}
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
        """Return the modules that this thread executes, outermost first; the list changes with the calls."""
        try:
            stack: list[Any] = self._local.stack
        except AttributeError:
            stack = self._local.stack = []
        return stack

    def text(self, module: Any) -> int:
        """Return the text id of the path of a module."""
        if self._learned_version != self._registry.version:
            self._learn()
        text_id = self._texts.get(id(module))
        if text_id is None:
            text_id = self._texts[id(module)] = self._recorder.writer.text(type(module).__name__)
        return text_id

    def path(self, module: Any) -> str:
        """Return the path of a module; the name of its class where it has none."""
        if self._learned_version != self._registry.version:
            self._learn()
        return self._paths.get(id(module)) or type(module).__name__

    def own_path(self, module: Any) -> str:
        """Return the path of a module: empty for the only root, the name of its class where none is known."""
        if self._learned_version != self._registry.version:
            self._learn()
        return self._own_paths.get(id(module), type(module).__name__)

    def _learn(self) -> None:
        self._learned_version = self._registry.version
        text = self._recorder.writer.text
        named = list(self._registry.named())
        self._own_paths = {id(m): path for path, m in named}
        self._paths = {id(m): path or type(m).__name__ for path, m in named}
        self._texts = {identity: text(path) for identity, path in self._paths.items()}
