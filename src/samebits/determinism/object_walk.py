"""Looks through objects for the generators that they hold, and remembers where they are held."""

from __future__ import annotations

import functools
import inspect
import random
import sys
import sysconfig
from collections import deque
from dataclasses import dataclass
from types import BuiltinMethodType, CodeType, FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Child = tuple[str, Callable[[], Any]]

# Of a longer container the first elements are looked at: a list of a million file names holds no generator.
LONGEST = 256
MOST = 50_000
_ATOMS = (str, bytes, bytearray, int, float, complex, bool, type(None), ModuleType, CodeType, range, slice)
_ATOM_NAMES = {("numpy", "ndarray"), ("torch", "Tensor"), ("torch.nn.parameter", "Parameter")}


@dataclass(frozen=True, slots=True)
class Found:
    """A place that holds a generator.

    Args:
        path: how it is reached, such as `dataset.transform.rng`.
        get: gives what is there now; None when it holds no generator any more.
    """

    path: str
    get: Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Walk:
    """What was found.

    Args:
        found: the places, in the order in which they were reached.
        visited: how many objects were looked at.
        complete: whether all that can be reached was.
        edges: a function that gives what is at a place, and what was there; None for what holds nothing.
        sizes: containers, and how many elements they had.
    """

    found: tuple[Found, ...]
    visited: int
    complete: bool
    edges: tuple[tuple[Callable[[], Any], Any], ...]
    sizes: tuple[tuple[Any, int], ...]

    def is_stale(self) -> bool:
        """Whether another walk might find more; takes a fifth of a walk."""
        for get, before in self.edges:
            now: Any = get()
            kind: Any = type(now)
            if now is not before and not is_atom(now) and not makes_generators(kind):
                return True
            if before is None and makes_generators(kind):
                return True
        return any(len(container) != size for container, size in self.sizes)


def walk(roots: dict[str, Any]) -> Walk:
    """Look through attributes, elements of containers, closures and arguments of functions and partials.

    Of the user's own functions and classes, not those of installed packages, also the globals that their
    code names: `rng = np.random.default_rng(0)` at the top of a script is found when a transform uses it.

    Args:
        roots: name -> object.
    """
    waiting: deque[Child] = deque()
    waiting.extend((name, functools.partial(_element, roots, name)) for name in roots)
    # Objects are kept alive, so that no identity is used twice.
    seen: dict[int, Any] = {}
    found: list[Found] = []
    edges: list[tuple[Callable[[], Any], Any]] = []
    while waiting and len(seen) < MOST:
        path, get = waiting.popleft()
        value = get()
        kind: Any = type(value)
        atom = is_atom(value)
        edges.append((get, None if atom else value))
        if atom:
            continue
        if makes_generators(kind):
            found.append(Found(path, functools.partial(_generator_at, get)))
        elif id(value) not in seen:
            seen[id(value)] = value
            waiting.extend((path + suffix, get) for suffix, get in _children(value))
    spaces = [getattr(value, "__dict__", value) for value in seen.values()]
    sizes = [(space, len(space)) for space in spaces if isinstance(space, (dict, list, deque))]
    return Walk(tuple(found), len(seen), not waiting, tuple(edges), tuple(sizes))


def is_atom(value: Any) -> bool:
    """Whether nothing can be held there: numbers, texts, arrays, tensors, modules."""
    kind = type(value)
    return isinstance(value, _ATOMS) or (kind.__module__, kind.__name__) in _ATOM_NAMES


def _generator_at(get: Callable[[], Any]) -> Any:
    value = get()
    kind: Any = type(value)
    return value if makes_generators(kind) else None


@functools.lru_cache(maxsize=256)
def makes_generators(kind: Any) -> bool:
    """Whether objects of that class are generators; found out once, because each sample asks."""
    import numpy as np
    import torch

    kinds = (np.random.Generator, np.random.BitGenerator, np.random.RandomState, torch.Generator)
    return issubclass(kind, (random.Random, *kinds)) and not issubclass(kind, random.SystemRandom)


def _children(value: Any) -> Iterator[Child]:
    for kinds, children in _KINDS:
        if isinstance(value, kinds):
            return children(value)
    return _of_instance(value)


def _of_sequence(value: Any) -> Iterator[Child]:
    for number in range(min(len(value), LONGEST)):
        yield f"[{number}]", functools.partial(_element, value, number)


def _of_set(_: Any) -> Iterator[Child]:
    return iter(())  # without an order there is no name for its elements


def _of_method(value: Any) -> Iterator[Child]:
    for name in ("__self__", "__func__"):
        if hasattr(value, name):
            yield f".{name}", functools.partial(getattr, value, name)


def _of_partial(value: Any) -> Iterator[Child]:
    for name in ("func", "args", "keywords"):
        yield f".{name}", functools.partial(getattr, value, name)


def _element(container: Any, key: Any) -> Any:
    try:
        return container[key]
    except (LookupError, TypeError):
        return None


def _of_dict(value: dict[Any, Any]) -> Iterator[Child]:
    for number, key in enumerate(list(value)):
        if number >= LONGEST:
            return
        if isinstance(key, (str, int)):
            yield f"[{key!r}]", functools.partial(_element, value, key)


def _of_function(value: FunctionType) -> Iterator[Child]:
    for name, cell in zip(value.__code__.co_freevars, value.__closure__ or (), strict=False):
        yield f"<{name}>", functools.partial(_cell, cell)
    yield ".__defaults__", functools.partial(getattr, value, "__defaults__")
    yield ".__kwdefaults__", functools.partial(getattr, value, "__kwdefaults__")
    if hasattr(value, "__wrapped__"):
        yield ".__wrapped__", functools.partial(getattr, value, "__wrapped__")
    if is_users(value.__code__.co_filename):
        yield from _named_globals(value)


def _cell(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # it is empty
        return None


def _named_globals(function: FunctionType) -> Iterator[Child]:
    names = names_of(function.__code__)
    space = function.__globals__
    for name in names:
        value = space.get(name)
        if isinstance(value, ModuleType):
            if is_users(getattr(value, "__file__", None) or ""):
                inner = vars(value)
                for attribute in names:
                    if attribute in inner:
                        yield f" {name}.{attribute}", functools.partial(_element, inner, attribute)
        elif name in space:
            yield f" {name}", functools.partial(_element, space, name)


@functools.lru_cache(maxsize=4096)
def names_of(code: CodeType) -> tuple[str, ...]:
    """The globals and attributes that code names, with the code inside of it."""
    names = list(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names += names_of(constant)
    return tuple(dict.fromkeys(names))


def _of_class(value: type[Any]) -> Iterator[Child]:
    """What the user's classes hold: attributes, and what the code of their methods names."""
    for kind in value.__mro__:
        if not _is_users_module(kind.__module__):
            continue
        for name, attribute in list(vars(kind).items()):
            function = inspect.unwrap(_function_of(attribute))
            if isinstance(function, FunctionType):
                yield f":{name}", functools.partial(lambda function: function, function)
            elif not name.startswith("__"):
                yield f":{name}", functools.partial(_class_attribute, kind, name)


def _is_users_module(name: str) -> bool:
    # A notebook's `__main__` has no file.
    return name == "__main__" or is_users(getattr(sys.modules.get(name), "__file__", None) or "")


def _function_of(attribute: Any) -> Any:
    if isinstance(attribute, (staticmethod, classmethod)):
        return attribute.__func__
    return attribute.fget if isinstance(attribute, property) and attribute.fget else attribute


def _class_attribute(kind: type[Any], name: str) -> Any:
    return vars(kind).get(name)


def _of_instance(value: Any) -> Iterator[Child]:
    space = getattr(value, "__dict__", None)
    if isinstance(space, dict):
        for name in list(space):
            yield f".{name}", functools.partial(_element, space, name)
    for kind in type(value).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else tuple(slots):
            if not name.startswith("__"):
                yield f".{name}", functools.partial(getattr, value, name, None)
    yield ":", functools.partial(type, value)


@functools.lru_cache(maxsize=4096)
def is_users(file: str) -> bool:
    """Whether that file is the user's own: not of an installed package, of Python or of samebits."""
    own = __file__.rpartition("determinism")[0]
    if not file or "site-packages" in file or "dist-packages" in file:
        return False
    return not file.startswith(("<frozen", _standard_library(), own))


@functools.cache
def _standard_library() -> str:
    return sysconfig.get_paths()["stdlib"]


_KINDS: tuple[tuple[Any, Callable[[Any], Iterator[Child]]], ...] = (
    (dict, _of_dict),
    ((list, tuple, deque), _of_sequence),
    ((set, frozenset), _of_set),
    ((MethodType, BuiltinMethodType), _of_method),
    (functools.partial, _of_partial),
    (FunctionType, _of_function),
    (type, _of_class),
)
