"""Callbacks after the script has imported a module, without a trace in the import itself."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING, Any

from samebits._runtime.frames import USER, FrameRanks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

    Callback = Callable[[ModuleType], None]

# The package as this module's import has it: later, its name may lead to a module of the script's own.
_PACKAGE = sys.modules["samebits"]


class PostImport:
    """An import hook that runs callbacks right after the bodies of modules, each once.

    The import system marks a module as complete by `spec._initializing = False`, under the module's import
    lock. The spec of a watched module has a class that notices this, and its former class again from then on.
    The loader is not wrapped: a wrapper would be seen by the module's body, and its frame in the traceback of
    a failed import.

    A failed import leaves its callbacks for the next attempt. An error in a callback comes out of the import.
    While it runs, other threads that import the module wait, and `import` of it in the same thread works; a
    submodule is not yet an attribute of its package. `importlib.reload` does not call back again. Where the
    script has its own `samebits.py`, a callback finds this package under that name all the same.
    """

    def __init__(self) -> None:
        self._callbacks: dict[str, list[Callback]] = {}

    def on_import(self, module_name: str, callback: Callback) -> None:
        """Call `callback(module)` after the module's body; at once if it has run already."""
        module = sys.modules.get(module_name)
        spec = getattr(module, "__spec__", None)
        in_progress = getattr(spec, "_initializing", False)
        if module is not None and not in_progress:
            _call(callback, module)
            return
        waiting = self._callbacks.setdefault(module_name, [])
        waiting.append(callback)
        if in_progress and len(waiting) == 1:  # its import has begun; the finder is not asked any more
            self._watch(spec)

    def on_torch(self, callback: Callback) -> None:
        """Call `callback(torch)` after PyTorch's body; never with a `torch.py` of the user's own."""
        self.on_import("torch", lambda torch: callback(torch) if hasattr(torch, "Tensor") else None)

    def install(self) -> None:
        """Begin to watch imports."""
        if self not in sys.meta_path:
            sys.meta_path.insert(0, self)

    def remove(self) -> None:
        """Restore `sys.meta_path` and forget the callbacks that have not run."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        self._callbacks.clear()

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec that the other finders give, watched; None for modules that nobody waits for."""
        if name not in self._callbacks:
            return None
        spec = self._spec_of_others(name, path, target)
        if spec is not None:
            self._watch(spec)
        return spec

    def _spec_of_others(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None
    ) -> ModuleSpec | None:
        finders = list(sys.meta_path)
        for finder in finders[finders.index(self) + 1 :] if self in finders else ():
            find_spec = getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = None if find_spec is None else find_spec(name, path, target)
            if spec is not None:
                return spec
        return None

    def _watch(self, spec: Any) -> None:
        spec.__class__ = _watched(type(spec), self._loaded)

    def _loaded(self, name: str) -> None:
        module = sys.modules.get(name)
        if module is None:
            return  # its body raised
        with own_package():
            for callback in self._callbacks.pop(name, ()):
                _call(callback, module)


def _call(callback: Callback, module: ModuleType) -> None:
    """Call back, unless the module is the user's own and only has the awaited name."""
    users_own = FrameRanks().rank_of_file(str(getattr(module, "__file__", None) or "<built-in>")) == USER
    if users_own and module.__name__.partition(".")[0] in sys.stdlib_module_names:
        return
    try:
        callback(module)
    except (AttributeError, KeyError):
        if not users_own:  # else it is another one, or a working copy, which has what is looked for
            raise


def is_visible() -> bool:
    """Tell whether `import samebits` gives this package, not one of the script's own."""
    return sys.modules.get("samebits") is _PACKAGE


@contextlib.contextmanager
def own_package() -> Iterator[None]:
    """Make `import samebits.x` import from this package."""
    theirs = sys.modules.get("samebits")
    sys.modules["samebits"] = _PACKAGE
    try:
        yield
    finally:
        if theirs is None:
            del sys.modules["samebits"]
        else:
            sys.modules["samebits"] = theirs


def _watched(base: type, loaded: Callable[[str], None]) -> type:
    """Return a class for specs that calls `loaded` at the end of the import."""

    def get(spec: Any) -> bool:
        return bool(vars(spec).get("_initializing", False))

    def assign(spec: Any, value: bool) -> None:  # noqa: FBT001 - the value of an attribute
        if value:
            vars(spec)["_initializing"] = True
            return
        spec.__class__ = base
        try:
            loaded(spec.name)
        finally:
            spec._initializing = False

    names = {"__module__": base.__module__, "__qualname__": base.__qualname__}
    return type(base.__name__, (base,), {**names, "_initializing": property(get, assign)})
