"""The state that a cell begins with: taken before it, and put back in place so that the cell can run again.

Variables keep their objects. Of what a cell can reach by the names in it, contents are put back too: tensors,
arrays, generators, containers, and the attributes of any objects, such as models and optimizers.
"""

from __future__ import annotations

import contextlib
import functools
import io
import re
import sys
import unicodedata
from dataclasses import dataclass
from types import BuiltinMethodType, CodeType, FunctionType, MemberDescriptorType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any

from samebits._runtime.containers import CONTAINERS, contents
from samebits._runtime.frames import USER, FrameRanks, pass_on
from samebits.commands.cell_facts import Left, NotRestored
from samebits.digest.values import is_array
from samebits.integrations._parts import (
    ArrayPart,
    AttributePart,
    ContainerPart,
    GeneratorPart,
    Part,
    SpacePart,
    StoragePart,
    TablePart,
    TensorPart,
    components,
    gradient,
    plain_array,
)
from samebits.rng.generator_objects import family_of

if TYPE_CHECKING:
    from collections.abc import Iterator

_MOST = 1_000_000  # objects
_ATOMS = (str, bytes, int, float, complex, type(None), type(Ellipsis), CodeType, range, slice)
# Of the program that runs the notebook, or half of what they are is in the system or in another process.
_NOT_OURS = frozenset({
    "IPython", "ipykernel", "traitlets", "zmq", "tornado", "jupyter_client", "asyncio", "threading",
    "_thread", "logging", "weakref", "samebits", "concurrent", "selectors", "importlib", "multiprocessing",
    "subprocess", "socket", "queue", "_queue",
})  # fmt: skip
_EMPTY = object()
_UNREADABLE = object()
_HOOKS = ("_backward_hooks", "_post_accumulate_grad_hooks")
_LOADERS = "torch.utils.data.dataloader"
_WORD = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True)
class Reading:
    """The state at one moment.

    Args:
        values: of the parts.
    """

    values: tuple[Any, ...]


class CellState:
    """What a cell can change, found before it runs.

    Args:
        variables: the notebook's.
        text: of the cell: by the names in it, it reaches what it can change.
    """

    def __init__(self, variables: dict[str, Any], text: str) -> None:
        self._variables = variables
        self._parts: list[tuple[str, Part]] = [("", SpacePart(variables))]
        self._seen: dict[int, Any] = {id(variables): variables}
        self._storages: dict[int, Any] = {}
        self._waiting: list[tuple[str, Any]] = []
        self._left: dict[tuple[str, Left], NotRestored] = {}
        words = _WORD.findall(unicodedata.normalize("NFKC", text))  # as Python spells names
        names = [name for name in dict.fromkeys(words) if name in variables]
        self.names = tuple(names)
        self._waiting += [(name, variables[name]) for name in reversed(names)]
        while self._waiting and len(self._seen) < _MOST:
            self._look(*self._waiting.pop())
        if self._waiting:
            self._leave(self._waiting[-1][0], Left.TOO_MANY)

    @property
    def not_restored(self) -> tuple[NotRestored, ...]:
        """What cannot be put back, as far as that is known."""
        return tuple(self._left.values())

    def read(self, before: Reading | None = None) -> Reading:
        """Return the present state.

        Args:
            before: an earlier state; contents that are the same are not copied again.
        """
        earlier = (None,) * len(self._parts) if before is None else before.values
        pairs = zip(self._parts, earlier, strict=True)
        return Reading(tuple(self._read(name, part, old) for (name, part), old in pairs))

    def restore(self, reading: Reading) -> None:
        """Put a state back."""
        for (name, part), value in zip(self._parts, reading.values, strict=True):
            if value is not _UNREADABLE:
                with self._no_errors(name):
                    part.write(value)

    def _read(self, name: str, part: Part, old: Any) -> Any:
        with self._no_errors(name):
            return part.read(None if old is _UNREADABLE else old)
        return _UNREADABLE

    @contextlib.contextmanager
    def _no_errors(self, name: str) -> Iterator[None]:
        """Name a variable whose contents no part here copes with: classes of libraries can do anything."""
        try:
            yield
        except Exception as error:  # noqa: BLE001
            pass_on(error)
            self._leave(name, Left.OPAQUE)

    def changed(self, before: Reading, after: Reading) -> tuple[str, ...]:
        """Return the variables that are there after a run and are new, hold other objects, or changed."""
        old, new = before.values[0], after.values[0]
        names = dict.fromkeys(name for name, value in new.items() if old.get(name, self) is not value)
        pairs = zip(self._parts, before.values, after.values, strict=True)
        names.update(dict.fromkeys(name for (name, _), a, b in pairs if a is not b))
        return tuple(name for name in names if name in new and not name.startswith("_"))

    def _leave(self, name: str, kind: Left) -> None:
        self._left.setdefault((name, kind), NotRestored(name, kind))

    def _look(self, name: str, value: Any) -> None:
        kind = type(value)
        if issubclass(kind, _ATOMS) or id(value) in self._seen:
            return
        self._seen[id(value)] = value
        with self._no_errors(name):
            self._look_inside(name, value)

    def _look_inside(self, name: str, value: Any) -> None:
        kind = type(value)
        if kind.__module__.partition(".")[0] in _NOT_OURS:
            return
        left = _kind_left(value)
        if left is not None:
            self._leave(name, left)
        if kind.__module__ == _LOADERS and hasattr(kind, "__next__"):
            return
        parts, children = _taken_apart(value)
        self._parts += [(name, part) for part in parts]
        self._waiting += [(name, child) for child in children if not issubclass(type(child), _ATOMS)]
        if hasattr(kind, "untyped_storage"):
            self._look_at_memory(name, value)

    def _look_at_memory(self, name: str, tensor: Any) -> None:
        try:
            storage = tensor.untyped_storage()
            key = storage.data_ptr()
        except (NotImplementedError, RuntimeError, ValueError):  # sparse, or not made yet, or kept to itself
            return
        if key and key not in self._storages:
            self._storages[key] = storage
            self._parts.append((name, StoragePart(storage)))


def _kind_left(value: Any) -> Left | None:
    """Return what an object is that cannot be put back; None for any other."""
    kind = type(value)
    if hasattr(kind, "untyped_storage"):
        return None if value.is_leaf else Left.GRAPH
    if hasattr(kind, "cache_info"):
        return Left.CACHE
    if issubclass(kind, io.IOBase):
        is_read = value not in (sys.__stdin__, sys.stdin) and not value.closed and value.readable()
        return Left.FILE if is_read else None
    is_iterator = any(hasattr(kind, name) for name in ("__next__", "__anext__", "cr_frame"))
    # An iterator of a class written in Python has attributes, which are put back; a loader's has workers.
    is_plain = _space(value) is None and not _members(_kind(value))
    return Left.ITERATOR if is_iterator and (is_plain or kind.__module__ == _LOADERS) else None


def _taken_apart(value: Any) -> tuple[list[Part], list[Any]]:
    """Return the parts of an object, and the objects that it holds."""
    kind = type(value)
    if issubclass(kind, ModuleType):
        space = vars(value)
        return ([SpacePart(space)], list(space.values())) if _is_of_user(value.__name__) else ([], [])
    if issubclass(kind, type):
        return _of_class(value) if _is_of_user(value.__module__) else ([], [])
    if issubclass(kind, FunctionType):
        return _of_function(value)
    if issubclass(kind, (MethodType, BuiltinMethodType)):
        return [], [getattr(value, "__self__", None), getattr(value, "__func__", None)]
    base = _table_class(kind)
    if base is not None:
        return [TablePart(value, base)], []
    parts, children = _of_instance(value)
    own, held = _contents_of(value)
    return parts + own, children + held


def _contents_of(value: Any) -> tuple[list[Part], list[Any]]:
    """Return the parts that an object has beside its attributes, and the objects that it holds there."""
    kind = type(value)
    if issubclass(kind, CONTAINERS):
        held = contents(value)
        return [ContainerPart(value)], list(held.values() if isinstance(held, dict) else held)
    if issubclass(kind, (tuple, frozenset, functools.partial)):
        return [], [value.func, value.args, value.keywords] if hasattr(kind, "func") else list(value)
    if hasattr(kind, "untyped_storage"):
        return _of_tensor(value)
    if hasattr(kind, "next_functions"):  # of a graph
        nodes = [node for node, _ in value.next_functions]
        return [], [*nodes, getattr(value, "variable", None)]
    if is_array(value):
        held = plain_array(value).ravel().tolist() if value.dtype.hasobject else []
        return [ArrayPart(value)] if value.flags.writeable else [], held
    return [GeneratorPart(value)] if family_of(value) else [], []


def _of_tensor(tensor: Any) -> tuple[list[Part], list[Any]]:
    if hasattr(tensor, "cls_to_become"):  # a lazy layer has not made it yet
        return [TensorPart(tensor)], []
    if not tensor.is_leaf:
        return [TensorPart(tensor)], [tensor.grad_fn, gradient(tensor), *components(tensor)]
    hooks = AttributePart.of_names(tensor, _HOOKS)
    return [TensorPart(tensor), hooks], [tensor.grad, *hooks.read().values(), *components(tensor)]


def _table_class(kind: type[Any]) -> Any:
    """Return the class of pandas that a table or a column belongs to; None for any other object."""
    pandas = sys.modules.get("pandas")
    bases = [getattr(pandas, name, object) for name in ("DataFrame", "Series")] if pandas is not None else []
    return next((base for base in bases if base is not object and issubclass(kind, base)), None)


def _of_instance(value: Any) -> tuple[list[Part], list[Any]]:
    parts: list[Part] = []
    children: list[Any] = []
    space = _space(value)
    if space is not None:
        parts += [AttributePart.of_names(value, ("__class__",)), SpacePart(space)]
        children += space.values()
    members = _members(_kind(value))
    if members:
        held = functools.partial(_slots, members, value)
        put = functools.partial(_set_slot, members, value)
        parts.append(AttributePart(held, put, functools.partial(_delete_slot, members, value)))
        children += held().values()
    if _is_of_user(type(value).__module__):
        children.append(type(value))
    return parts, children


def _of_function(function: FunctionType) -> tuple[list[Part], list[Any]]:
    parts: list[Part] = [SpacePart(function.__dict__)]
    children: list[Any] = [function.__defaults__, function.__kwdefaults__, *function.__dict__.values()]
    for cell in function.__closure__ or ():
        part = AttributePart.of_cell(cell)
        parts.append(part)
        children += part.read().values()
    if _is_of_user(function.__module__ or ""):
        space = function.__globals__
        if space.get("__name__") != "__main__":  # of a module of the user's
            parts.append(SpacePart(space))
        children += [space[name] for name in _names_of(function.__code__) if name in space]
    return parts, children


def _of_class(kind: type[Any]) -> tuple[list[Part], list[Any]]:
    def held() -> dict[str, Any]:
        return {name: value for name, value in vars(kind).items() if not name.startswith("__")}

    put = functools.partial(type.__setattr__, kind)
    functions = [function for value in vars(kind).values() for function in _functions_in(value)]
    bases = [base for base in kind.__mro__[1:] if _is_of_user(base.__module__)]
    return [AttributePart(held, put, functools.partial(type.__delattr__, kind))], [*functions, *bases]


def _functions_in(value: Any) -> list[Any]:
    """Return an attribute of a class, and the functions that it holds if it is a property or a method."""
    held = [getattr(value, name, None) for name in ("__func__", "func", "fget", "fset", "fdel")]
    return [value, *(each for each in held if each is not None)]


def _space(value: Any) -> dict[str, Any] | None:
    """Return the attributes of an object; None when it has none."""
    try:
        space = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return None
    return space if type(space) is dict else None


def _kind(value: Any) -> Any:
    return type(value)


@functools.lru_cache(maxsize=4096)
def _members(kind: Any) -> dict[str, MemberDescriptorType]:
    """Return the slots of a class that is written in Python."""
    slots = [vars(each) for each in kind.__mro__ if "__slots__" in vars(each)]
    return {
        name: member
        for space in slots
        for name, member in space.items()
        if isinstance(member, MemberDescriptorType) and name not in ("__dict__", "__weakref__")
    }


def _slots(members: dict[str, Any], value: Any) -> dict[str, Any]:
    held = {name: _slot(member, value) for name, member in members.items()}
    return {name: content for name, content in held.items() if content is not _EMPTY}


def _slot(member: Any, value: Any) -> Any:
    try:
        return member.__get__(value)
    except AttributeError:  # it is empty
        return _EMPTY


def _set_slot(members: dict[str, Any], value: Any, name: str, content: Any) -> None:
    members[name].__set__(value, content)


def _delete_slot(members: dict[str, Any], value: Any, name: str) -> None:
    members[name].__delete__(value)


def _names_of(code: CodeType) -> tuple[str, ...]:
    inner = [name for each in code.co_consts if isinstance(each, CodeType) for name in _names_of(each)]
    return tuple(dict.fromkeys((*code.co_names, *inner)))


@functools.lru_cache(maxsize=4096)
def _is_of_user(module: str) -> bool:
    """Tell whether a module is the notebook or a file of the user's own."""
    if module == "__main__":
        return True
    file = getattr(sys.modules.get(module), "__file__", None)
    return file is not None and FrameRanks().rank_of_file(file) == USER
