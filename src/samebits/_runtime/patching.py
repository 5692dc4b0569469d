"""Patches: attributes that are replaced, and put back exactly as they were."""

from __future__ import annotations

import ctypes
import functools
import gc
import sys
from types import FunctionType, MethodDescriptorType, ModuleType
from typing import TYPE_CHECKING, Any

from samebits._runtime.builtin_proxies import BuiltinProxy, MethodProxy, call_only, is_own, proxy_of
from samebits._runtime.frames import show_warning

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Write = Callable[[Any, str, Any], None]

ABSENT = object()


def pickle_by_location(owner: Any, name: str, value: Any) -> None:
    """Make pickle send a wrapper as `owner.name`, where it can be looked up as long as it is in place.

    A function is pickled by name (`Pool(initializer=torch.manual_seed)`), and pickle refuses one that is not
    what that name leads to. A wrapper that the names copied by `functools.wraps` lead to keeps them, and is
    pickled as the original is.

    Args:
        owner: the module or class.
        name: the attribute.
        value: the new value there. Anything but a wrapper is left as it is.
    """
    if not isinstance(value, FunctionType) or not hasattr(value, "__wrapped__") or _by_name(value) is value:
        return
    if isinstance(owner, ModuleType):
        value.__module__, value.__qualname__ = owner.__name__, name
    elif isinstance(owner, type):
        value.__module__, value.__qualname__ = owner.__module__, f"{owner.__qualname__}.{name}"


class Layer:
    """One replaced attribute.

    Attributes:
        key: the attribute that is replaced.
        original: the value before.
        before: the value to put back. It differs from `original` when a layer below is gone too. Both are
            `ABSENT` where the owner itself has no such attribute.
        held: the value that the owner held right after the assignment. It is another object than the
            assigned one where a metaclass or a module changes it.
        live: whether it is still wanted.
    """

    __slots__ = ("before", "held", "key", "live", "name", "original", "owner", "write")

    def __init__(self, owner: Any, name: str, before: Any, write: Write) -> None:
        self.owner, self.name, self.write = owner, name, write
        self.original = self.before = before
        self.held = ABSENT
        self.live = True
        self.key = (id(owner), name)  # a layer keeps the owner alive, and so its id


class PatchedAttributes:
    """The replaced attributes of this process, each with its layers, the first made first.

    Layers of several `Patches` may lie on one attribute, and may be taken away in any order and by any
    thread. There is no lock, which a fork could leave locked in the child: each operation is one that the
    interpreter does not interrupt, and those on a layer that is gone change nothing.
    """

    def __init__(self) -> None:
        self._layers: dict[tuple[int, str], list[Layer]] = {}
        self._told: dict[tuple[int, str], Any] = {}
        self._ending = False

    def process_ends(self) -> None:
        """Stop warning: at the end of the process it does not matter which replacements remain."""
        self._ending = True

    def add(self, layer: Layer, value: Any) -> None:
        """Replace an attribute."""
        self._layers.setdefault(layer.key, []).append(layer)
        layer.write(layer.owner, layer.name, value)
        layer.held = _held(layer.owner, layer.name)

    def remove(self, layer: Layer) -> str:
        """Undo a replacement where it still stands.

        Returns:
            The attribute's name if other code has replaced it since and no warning has said so; else empty.
        """
        layer.live = False
        _make_inert(layer)
        layers = self._layers.get(layer.key, [])
        if layers == [layer] and _taken_away(layer, layers):  # as nearly always; the rest would do the same
            self._layers.pop(layer.key, None)
            self._told.pop(layer.key, None)
            return ""
        for gone in [other for other in reversed(layers) if not other.live]:
            if _taken_away(gone, layers):
                layers.remove(gone)
        name = self._news_of(layer) if layer in layers else ""
        if not any(other.live for other in layers):
            self._layers.pop(layer.key, None)
            self._told.pop(layer.key, None)
        return name

    def _news_of(self, layer: Layer) -> str:
        """Return the name of an attribute that other code has replaced, unless that was said before."""
        stands = _held(layer.owner, layer.name)
        is_news = self._told.get(layer.key, ABSENT) is not stands
        self._told[layer.key] = stands
        return _shown_name(layer) if is_news and not self._ending and not _is_of_torch(stands) else ""


PATCHED = PatchedAttributes()


class Patches:
    """A list of replaced attributes; `restore` undoes them, the last first.

    A replacement is undone where it still stands. Where other code has replaced the attribute since, that
    stays, and a warning names the attribute. A function that was put in place calls only the original once it
    is undone, for whoever still holds it.

    A function of a module is replaced in the module that it comes from as well, as far as it stands there:
    `os.getpid` in `posix` too. There pickle looks for it, and there the two are the same object.
    """

    def __init__(self) -> None:
        self._layers: list[Layer] = []
        self._at_home: dict[tuple[int, str], Any] = {}
        self._made: dict[int, tuple[Any, Any]] = {}

    def set(self, owner: Any, name: str, value: Any) -> None:
        """Replace `owner.name`; an inherited attribute is shadowed and later uncovered again."""
        original = vars(owner).get(name, ABSENT)
        here = self._at_home.get((id(owner), name), ABSENT)
        if here is original and getattr(value, "__wrapped__", None) is here is not ABSENT:
            return  # replaced already, in the other module that holds it
        if isinstance(owner, ModuleType):
            value = self._shared_wrapper(original, value)
            home, name_there = _home_of(original)
            if home is not None and (home, name_there) != (owner, name):
                self._put(Layer(home, name_there, original, _assign), value)
                self._at_home[id(home), name_there] = value
        elif isinstance(owner, type):
            value = _as_the_method(value)
        self._put(Layer(owner, name, original, _assign), value)
        pickle_by_location(owner, name, value)

    def restore(self) -> None:
        """Undo every replacement that still stands."""
        self._at_home.clear()
        self._made.clear()
        replaced = []
        while self._layers:
            replaced.append(PATCHED.remove(self._layers.pop()))
        names = sorted(set(replaced) - {""})
        if names:
            _warn_of_others(names)

    def _shared_wrapper(self, original: Any, value: Any) -> Any:
        """Return one wrapper for a function, however many attributes hold it."""
        if getattr(value, "__wrapped__", ABSENT) is not original:
            return value
        return self._made.setdefault(id(original), (original, _as_the_original(original, value)))[1]

    def _put(self, layer: Layer, value: Any) -> None:
        self._layers.append(layer)
        PATCHED.add(layer, value)


def _assign(owner: Any, name: str, value: Any) -> None:
    if value is ABSENT:
        delattr(owner, name)
    else:
        setattr(owner, name, value)


def _held(owner: Any, name: str) -> Any:
    return vars(owner).get(name, ABSENT)


def _taken_away(layer: Layer, layers: Sequence[Layer]) -> bool:
    """Take away a layer that is not wanted any more; return False where other code put something on top."""
    held = _held(layer.owner, layer.name)
    if held is layer.held:
        layer.write(layer.owner, layer.name, layer.before)
        return True
    for above in layers:
        if above is not layer and above.before is layer.held:
            above.before = layer.before
            return True
    return held is layer.before  # other code has put back what was there


def _is_of_torch(value: Any) -> bool:
    """Tell whether torch's compiler put it there: loaded late, it wraps for good what it must not compile."""
    names = getattr(value, "__globals__", {})
    return str(names.get("__name__")).partition(".")[0] == "torch"


def _shown_name(layer: Layer) -> str:
    owner = layer.owner if isinstance(layer.owner, ModuleType | type) else type(layer.owner)
    module = getattr(owner, "__module__", "")
    prefix = f"{module}." if isinstance(owner, type) and module != "builtins" else ""
    return f"{prefix}{getattr(owner, '__qualname__', owner.__name__)}.{layer.name}"


def _warn_of_others(names: Sequence[str]) -> None:
    message = (
        f"{', '.join(names)}: other code replaced this after samebits had replaced it, so it stays as it is "
        "now; to get the original back, undo that replacement before samebits ends"
    )
    show_warning(message)


def _make_inert(layer: Layer) -> None:
    """Make a replacement call only the original: other code may still hold it, and call it."""
    value: Any = layer.held
    if issubclass(type(value), BuiltinProxy | MethodProxy):  # `isinstance` would ask the original
        value.retire()
        return
    if isinstance(value, classmethod | staticmethod):
        value = value.__func__
    if isinstance(value, FunctionType) and value.__closure__:  # else it was not made for this attribute alone
        original = _callable_original(layer)
        wrapped = getattr(value, "__wrapped__", original)
        if layer.original is ABSENT or wrapped is original or is_own(value.__code__):
            call_only(value, wrapped)


def _callable_original(layer: Layer) -> Any:
    if isinstance(layer.original, classmethod | staticmethod):
        return layer.original.__func__
    if layer.original is ABSENT and isinstance(layer.owner, type):
        return _inherited(layer.owner, layer.name)
    return layer.original


def _inherited(owner: type, name: str) -> Any:
    def call(first: Any, *args: Any, **named: Any) -> Any:
        return getattr(super(owner, first), name)(*args, **named)

    return call


def _as_the_original(original: Any, value: Any) -> Any:
    """Return a proxy where the original is not written in Python, else the value: see `proxy_of`."""
    written_in_python = isinstance(original, FunctionType | type) or original is ABSENT
    if written_in_python or not isinstance(value, FunctionType) or not callable(original):
        return value
    return proxy_of(original, staticmethod(value))


def _as_the_method(value: Any) -> Any:
    """Return a proxy where the original is a method written in C, else the value: see `MethodProxy`."""
    original = getattr(value, "__wrapped__", None)
    if not isinstance(value, FunctionType) or not isinstance(original, MethodDescriptorType):
        return value
    return MethodProxy(original, value)


def _home_of(function: Any) -> tuple[ModuleType | None, str]:
    """Return the module in which pickle looks for a function, and the name there; None if it is not there."""
    module = sys.modules.get(str(getattr(function, "__module__", None)))
    name = str(getattr(function, "__qualname__", ""))
    if module is None or isinstance(function, type) or vars(module).get(name) is not function:
        return None, ""
    return module, name


def _by_name(function: Any) -> Any:
    """Return the object that the names of a function lead to."""
    module = sys.modules.get(function.__module__)
    try:
        return functools.reduce(getattr, function.__qualname__.split("."), module)
    except AttributeError:
        return None


class StaticTypePatches(Patches):
    """Replaced methods of C types, such as `torch.Generator.seed`; `restore` undoes them.

    `setattr` refuses (`cannot set 'seed' attribute of immutable type`), and so does the proxy that `vars`
    gives. The dict behind the proxy is an ordinary one, which `gc.get_referents` finds; CPython documents
    `PyType_Modified` for telling the interpreter that it was changed. Not for names with two
    underscores on each side: the interpreter finds those through slots.
    """

    def set(self, owner: type, name: str, value: Any) -> None:
        """Replace the method `name` that `owner` itself has.

        Raises:
            KeyError: it has none of that name.
        """
        layer = Layer(owner, name, vars(owner)[name], _assign_to_type)
        pickle_by_location(owner, name, value)
        self._put(layer, value)


def _assign_to_type(owner: type, name: str, value: Any) -> None:
    (members,) = gc.get_referents(vars(owner))
    members[name] = value
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(owner))
