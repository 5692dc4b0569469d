"""Search of objects for the generators that they hold, by the paths that lead to them."""

from __future__ import annotations

import functools
import inspect
import itertools
import os
import random
import sys
import sysconfig
from collections import deque
from dataclasses import dataclass
from types import (
    BuiltinMethodType,
    CodeType,
    FunctionType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
)
from typing import TYPE_CHECKING, Any

from samebits._runtime.frames import pass_on
from samebits._runtime.package import FOLDER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Child = tuple[str, Callable[[], Any]]

# Of longer containers only the first elements are examined: a million file names hold no generator.
LONGEST = 256
MOST = 50_000
_MOST_EDGES = 1_000_000
# Up to these sizes the graph is remembered, and examined again after each batch.
_SMALL, _FEW_EDGES = 300, 3000
_ATOMS = (str, bytes, bytearray, int, float, complex, bool, type(None), ModuleType, CodeType, range, slice)
_ATOM_NAMES = {("numpy", "ndarray"), ("torch", "Tensor"), ("torch.nn.parameter", "Parameter")}


@dataclass(frozen=True, slots=True)
class GeneratorPath:
    """A path that leads to a generator.

    Args:
        path: its text, such as `dataset.transform.rng`.
        get: gives the generator at the path now; None if there is none any more.
    """

    path: str
    get: Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Walk:
    """The result of a search.

    Args:
        generators: the paths to generators, in the order in which they were reached.
        visited: the number of objects that were examined.
        complete: everything that can be reached was examined.
        large: too large to be examined again after each batch; edges and sizes are then empty.
        edges: for each edge a function that gives its object now, and the object that was there; None for one
            that holds nothing.
        sizes: containers, and the number of elements that they had.
    """

    generators: tuple[GeneratorPath, ...]
    visited: int
    complete: bool
    large: bool
    edges: tuple[tuple[Callable[[], Any], Any], ...]
    sizes: tuple[tuple[Any, int], ...]

    def is_stale(self) -> bool:
        """Tell whether another walk might find more; takes a fifth of the time of a walk."""
        for get, before in self.edges:
            now: Any = get()
            kind: Any = type(now)
            if now is not before and not _is_atom(now) and not _is_generator_type(kind):
                return True
            if before is None and _is_generator_type(kind):
                return True
        return any(_length(container) != size for container, size in self.sizes)


def walk(roots: dict[str, Any]) -> Walk:
    """Search attributes, elements of containers, closures and arguments of functions and partials.

    The globals that the user's own functions and classes name are examined too, but not those of installed
    packages: `rng = np.random.default_rng(0)` at the top of a script counts when a transform uses it.

    Args:
        roots: name -> object.
    """
    # Children are named when their turn comes, which most of a large graph never reach.
    waiting: deque[tuple[str, Iterator[Child]]] = deque([("", _of_roots(roots))])
    # Objects are kept alive, so that no identity is used twice.
    seen: dict[int, Any] = {}
    generators: list[GeneratorPath] = []
    edges: list[tuple[Callable[[], Any], Any]] = []
    count = 0
    while waiting and len(seen) < MOST and count < _MOST_EDGES:
        begin, children = waiting[0]
        child = next(children, None)
        if child is None:
            waiting.popleft()
            continue
        (suffix, get), count = child, count + 1
        value = get()
        kind: Any = type(value)
        atom = _is_atom(value)
        if count <= _FEW_EDGES:
            edges.append((get, None if atom else value))
        if not atom and _is_generator_type(kind):
            generators.append(GeneratorPath(begin + suffix, functools.partial(_generator_at, get)))
        elif not atom and id(value) not in seen:
            seen[id(value)] = value
            waiting.append((begin + suffix, _children(value)))
    if count > _FEW_EDGES or len(seen) > _SMALL:
        return Walk(tuple(generators), len(seen), not waiting, True, (), ())
    sizes = [(held, size) for value in seen.values() for held, size in _sizes(value)]
    return Walk(tuple(generators), len(seen), not waiting, False, tuple(edges), tuple(sizes))


def _of_roots(roots: dict[str, Any]) -> Iterator[Child]:
    for name in roots:
        yield name, functools.partial(_at_key, roots, name)


def _sizes(value: Any) -> Iterator[tuple[Any, int]]:
    for held in (value, _space(value)):
        if issubclass(type(held), (dict, list, deque)):
            yield held, _length(held)


def _is_atom(value: Any) -> bool:
    """Tell whether the value can hold nothing: numbers, texts, arrays, tensors, modules."""
    kind = type(value)
    return issubclass(kind, _ATOMS) or (kind.__module__, kind.__name__) in _ATOM_NAMES


def _generator_at(get: Callable[[], Any]) -> Any:
    value = get()
    kind: Any = type(value)
    return value if _is_generator_type(kind) else None


@functools.lru_cache(maxsize=256)
def _is_generator_type(kind: Any) -> bool:
    """Tell whether objects of the class are generators; cached, because each sample asks."""
    import numpy as np
    import torch

    kinds = (np.random.Generator, np.random.BitGenerator, np.random.RandomState, torch.Generator)
    return issubclass(kind, (random.Random, *kinds)) and not issubclass(kind, random.SystemRandom)


def _children(value: Any) -> Iterator[Child]:
    """Yield what an object holds without running its class's own code, which may load, evaluate or fail.

    So `__class__`, `__getattr__`, properties and the methods of subclasses of dict or list are not used.
    """
    kind = type(value)
    for kinds, children in _KINDS:
        if issubclass(kind, kinds):
            yield from children(value)
            if kind not in kinds and kind.__module__ not in ("builtins", "collections"):
                yield from _of_instance(value)  # a list of the user's own class has attributes too
            return
    yield from _of_instance(value)


def _length(container: Any) -> int:
    return int(_base(container).__len__(container))


def _base(container: Any) -> Any:
    return next(kind for kind in (dict, list, tuple, deque) if issubclass(type(container), kind))


def _of_sequence(value: Any) -> Iterator[Child]:
    base = _base(value)
    for number in range(min(_length(value), LONGEST)):
        yield f"[{number}]", functools.partial(_at_number, base, value, number)


def _of_set(_: Any) -> Iterator[Child]:
    return iter(())  # its elements have no order, and so no names


def _of_method(value: Any) -> Iterator[Child]:
    for name in ("__self__", "__func__"):
        if hasattr(value, name):
            yield f".{name}", functools.partial(getattr, value, name)


def _of_partial(value: Any) -> Iterator[Child]:
    for name in ("func", "args", "keywords"):
        yield f".{name}", functools.partial(getattr, value, name)


def _at_number(base: Any, container: Any, number: int) -> Any:
    try:
        return base.__getitem__(container, number)
    except IndexError:
        return None


def _at_key(container: dict[Any, Any], key: Any) -> Any:
    return dict.get(container, key)  # `[]` of a defaultdict would put something there


def _of_dict(value: dict[Any, Any]) -> Iterator[Child]:
    for key in itertools.islice(list(dict.keys(value)), LONGEST):
        if isinstance(key, (str, int)):
            yield f"[{key!r}]", functools.partial(_at_key, value, key)


def _of_function(value: FunctionType) -> Iterator[Child]:
    for name, cell in zip(value.__code__.co_freevars, value.__closure__ or (), strict=False):
        yield f"<{name}>", functools.partial(_cell, cell)
    yield ".__defaults__", functools.partial(getattr, value, "__defaults__")
    yield ".__kwdefaults__", functools.partial(getattr, value, "__kwdefaults__")
    if hasattr(value, "__wrapped__"):
        yield ".__wrapped__", functools.partial(getattr, value, "__wrapped__")
    if _is_users(value.__code__.co_filename):
        yield from _named_globals(value)


def _cell(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # it is empty
        return None


def _named_globals(function: FunctionType) -> Iterator[Child]:
    names = _names_of(function.__code__)
    space = function.__globals__
    for name in names:
        value = space.get(name)
        if isinstance(value, ModuleType):
            if _is_users(getattr(value, "__file__", None) or ""):
                inner = vars(value)
                for attribute in names:
                    if attribute in inner:
                        yield f" {name}.{attribute}", functools.partial(_at_key, inner, attribute)
        elif name in space:
            yield f" {name}", functools.partial(_at_key, space, name)


@functools.lru_cache(maxsize=4096)
def _names_of(code: CodeType) -> tuple[str, ...]:
    """Return the globals and attributes that code names, including the code inside of it."""
    names = list(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names += _names_of(constant)
    return tuple(dict.fromkeys(names))


def _of_class(value: type[Any]) -> Iterator[Child]:
    """Yield what the user's classes hold: attributes, and the names in the code of their methods."""
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
    return name == "__main__" or _is_users(getattr(sys.modules.get(name), "__file__", None) or "")


def _function_of(attribute: Any) -> Any:
    if isinstance(attribute, (staticmethod, classmethod)):
        return attribute.__func__
    return attribute.fget if isinstance(attribute, property) and attribute.fget else attribute


def _class_attribute(kind: type[Any], name: str) -> Any:
    return vars(kind).get(name)


def _of_instance(value: Any) -> Iterator[Child]:
    space = _space(value) or {}
    for name in list(dict.keys(space)):
        yield f".{name}", functools.partial(_at_key, space, name)
    for kind in type(value).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else tuple(slots):
            if name not in ("__dict__", "__weakref__"):
                yield f".{name}", functools.partial(_slot, kind, name, value)
    yield ":", functools.partial(type, value)


def _space(value: Any) -> dict[str, Any] | None:
    """Return the attributes of an object; None when it has none, or does not give them."""
    try:
        space = object.__getattribute__(value, "__dict__")
    except Exception as error:  # noqa: BLE001 - a property of that name may do anything
        pass_on(error)
        return None
    return space if issubclass(type(space), dict) else None


def _slot(kind: type[Any], name: str, value: Any) -> Any:
    private = name.startswith("__") and not name.endswith("__")
    member = kind.__dict__.get(f"_{kind.__name__.lstrip('_')}{name}" if private else name)
    try:
        return member.__get__(value) if isinstance(member, MemberDescriptorType) else None
    except AttributeError:  # it is empty
        return None


@functools.lru_cache(maxsize=4096)
def _is_users(file: str) -> bool:
    """Tell whether the file is the user's own: not of an installed package, of Python or of samebits."""
    if not file or "site-packages" in file or "dist-packages" in file:
        return False
    return not file.startswith(("<frozen", _standard_library(), FOLDER + os.sep))


@functools.cache
def _standard_library() -> str:
    return sysconfig.get_paths()["stdlib"]


_KINDS: tuple[tuple[tuple[Any, ...], Callable[[Any], Iterator[Child]]], ...] = (
    ((dict,), _of_dict),
    ((list, tuple, deque), _of_sequence),
    ((set, frozenset), _of_set),
    ((MethodType, BuiltinMethodType), _of_method),
    ((functools.partial,), _of_partial),
    ((FunctionType,), _of_function),
    ((type,), _of_class),
)
