"""Python values that a step changes: counters, lists and references, saved and put back.

A step function often counts or collects: `seen += 1`, `losses.append(loss.item())`, `self.hidden = h`.
Executed again, it would do so twice.
"""

from __future__ import annotations

import functools
import sys
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any

import torch

from samebits._runtime.containers import CONTAINERS, are_same, contents, refill
from samebits._runtime.frames import USER, FrameRanks
from samebits._torch.core import version_of
from samebits.digest.values import is_array
from samebits.errors import SamebitsError
from samebits.replay_guard._tensor_state import copy_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_DEEPEST = 3
_MOST_ELEMENTS = 100_000
_MOST_SEARCHED = 256
_TAIL = 1000  # of a longer list: steps append to it
_SMALL_BYTES = 1 << 20
# Tables of a module that hold what is saved elsewhere, or hooks.
_TORCH_OWN = frozenset(vars(torch.nn.Module()))
_MISSING = object()


class PlainState:
    """The values of variables at one moment, as far as they are plain.

    References are put back as they were. Of lists, dicts, sets and deques the contents are put back too, and
    so are the attributes of objects of the user's own classes, and of modules such as metrics. Small tensors
    and arrays are copied; larger tensors are watched.

    Args:
        function: its closure, the globals that it names, and the attributes of its object are variables.
        modules: so are the attributes of modules.
        known: identities of tensors that are saved elsewhere.
        arguments: what the function is called with, in nested tuples: a dict, a metric.
    """

    def __init__(
        self,
        function: Any,
        modules: Sequence[torch.nn.Module],
        known: set[int],
        arguments: Any = (),
    ) -> None:
        self._known = known
        self._cells: list[tuple[CellType, Any]] = []
        self._names: list[tuple[dict[str, Any], str, Any]] = []
        self._owners: list[tuple[dict[str, Any], set[str]]] = []
        self._containers: list[tuple[Any, Any]] = []
        self._tensors: list[tuple[str, torch.Tensor, torch.Tensor | int]] = []
        self._arrays: list[tuple[Any, Any]] = []
        self._seen = {id(owner) for module in modules for owner in module.modules()}
        for variables in _attributes(function, modules):
            self._own(variables)
        for variables, names in _named_globals(function):
            self._note(variables, names)
        for name, cell in _cells(function):
            value = _contents(cell)
            self._cells.append((cell, value))
            self._look(name, value)
        bound = [
            (each.args, each.keywords) for each in _parts(function) if isinstance(each, functools.partial)
        ]
        for number, value in enumerate(_untupled((arguments, *bound))):
            self._look(f"argument {number}", value)

    def restore(self) -> None:
        """Put everything back."""
        for cell, value in self._cells:
            if value is not _MISSING and _contents(cell) is not value:
                cell.cell_contents = value
        for variables, names in self._owners:
            _drop_new(variables, names)
        for variables, name, value in self._names:
            if variables.get(name, _MISSING) is not value:
                variables[name] = value
        for container, before in self._containers:
            _refill(container, before)
        self._restore_numbers()

    def _restore_numbers(self) -> None:
        with torch.no_grad():
            for _, tensor, saved in self._tensors:
                if isinstance(saved, torch.Tensor) and tensor.shape == saved.shape:
                    tensor.data.copy_(saved)
        for array, copy in self._arrays:
            array[...] = copy

    @property
    def tensors(self) -> list[torch.Tensor]:
        """The tensors whose contents are put back."""
        return [tensor for _, tensor, saved in self._tensors if isinstance(saved, torch.Tensor)]

    def check(self) -> None:
        """Look for a large tensor that was written to since: its contents are lost.

        Raises:
            SamebitsError: there is one; `replay-side-effect`.
        """
        for name, tensor, saved in self._tensors:
            if isinstance(saved, int) and version_of(tensor) != saved:
                shape = list(tensor.shape)
                raise side_effect(f"writes to the tensor `{name}` ({shape})")

    def _own(self, variables: dict[str, Any], depth: int = 0) -> None:
        self._owners.append((variables, set(variables)))
        self._note(variables, [name for name in variables if name not in _TORCH_OWN], depth)

    def _note(self, variables: dict[str, Any], names: list[str], depth: int = 0) -> None:
        for name in names:
            self._names.append((variables, name, variables[name]))
            self._look(name, variables[name], depth)

    def _look(self, name: str, value: Any, depth: int = 0) -> None:
        if id(value) in self._seen or id(value) in self._known:
            return
        self._seen.add(id(value))
        if isinstance(value, torch.Tensor):
            self._tensors.append((name, value, _copy_or_version(value)))
        elif is_array(value):
            if getattr(value, "nbytes", _SMALL_BYTES) < _SMALL_BYTES and value.flags.writeable:
                self._arrays.append((value, value.copy()))
        elif isinstance(value, CONTAINERS):
            self._look_inside(name, value, depth)
        elif isinstance(value, torch.nn.Module):
            self._look_into(value, depth)
        elif depth < _DEEPEST and _is_of_user(type(value)):
            self._own(_space(value), depth + 1)

    def _look_inside(self, name: str, container: Any, depth: int) -> None:
        if isinstance(container, list) or len(container) <= _MOST_ELEMENTS:
            self._containers.append((container, _shallow(container)))
        if depth < _DEEPEST and len(container) <= _MOST_SEARCHED:
            for item in _elements(container):
                self._look(name, item, depth + 1)

    def _look_into(self, module: torch.nn.Module, depth: int) -> None:
        """Note a module that the guard was not given, such as a metric."""
        for each in module.modules():
            self._seen.add(id(each))
            if not _is_of_torch(each):
                self._own(_space(each), depth + 1)
        for name, tensor in (*module.named_buffers(), *module.named_parameters()):
            self._look(name, tensor)


def side_effect(what: str) -> SamebitsError:
    """Return the error for a step that cannot be executed twice without a trace."""
    return SamebitsError(
        f"the step {what}, which cannot be undone when the step is executed again. Expected changes of "
        "gradients, buffers and plain variables only. Move it out of the step, or make it a buffer of a "
        "module that ReplayGuard is given.",
        slug="replay-side-effect",
    )


def _copy_or_version(tensor: torch.Tensor) -> torch.Tensor | int:
    if tensor.layout is torch.strided and not tensor.is_meta and tensor.nbytes <= _SMALL_BYTES:
        return copy_of(tensor)
    return version_of(tensor)


def _contents(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # it is empty
        return _MISSING


def _elements(container: Any) -> Iterable[Any]:
    return list(container.values()) if isinstance(container, dict) else list(container)


def _drop_new(variables: dict[str, Any], names: set[str]) -> None:
    for name in [name for name in variables if name not in names and name not in _TORCH_OWN]:
        del variables[name]


def _is_of_torch(module: torch.nn.Module) -> bool:
    return type(module).__module__.startswith("torch.")


def _is_of_user(kind: type[Any]) -> bool:
    module = sys.modules.get(kind.__module__)
    return kind.__module__ == "__main__" or _is_users(getattr(module, "__file__", None) or "<frozen>")


def _space(value: Any) -> dict[str, Any]:
    space = getattr(value, "__dict__", None)
    return space if isinstance(space, dict) else {}


def _shallow(container: Any) -> Any:
    """Return the contents; of a list the position from which on they are kept, and these."""
    if isinstance(container, list):
        start = 0 if len(container) <= _MOST_ELEMENTS else len(container) - _TAIL
        return start, container[start:]
    return contents(container)


def _refill(container: Any, before: Any) -> None:
    """Put elements back where they are not the same objects any more."""
    if not isinstance(container, list):
        refill(container, before)
        return
    start, items = before
    if not are_same(container[start:], items):
        container[start:] = items


def _functions(function: Any) -> Iterator[FunctionType]:
    """Yield the functions that make up a callable: through methods, partials, decorators and objects."""
    for each in _parts(function):
        if isinstance(each, FunctionType):
            yield each


def _untupled(value: Any) -> Iterator[Any]:
    if isinstance(value, tuple):
        for each in value:
            yield from _untupled(each)
    else:
        yield value


def _parts(function: Any) -> list[Any]:
    """Return a callable and all that it calls as far as can be seen: each a function or an object."""
    waiting, seen = [function], {}
    while waiting:
        each = waiting.pop()
        if id(each) in seen:
            continue
        seen[id(each)] = each
        if isinstance(each, FunctionType):
            waiting += [value for _, cell in _own_cells(each) if callable(value := _contents(cell))]
        elif callable(each) and not isinstance(each, (type, torch.nn.Module)):
            waiting.append(type(each).__call__)
        waiting += [getattr(each, name, None) for name in ("func", "__func__", "__self__", "__wrapped__")]
        waiting = [inner for inner in waiting if inner is not None]
    return list(seen.values())


def _own_cells(function: FunctionType) -> list[tuple[str, CellType]]:
    return list(zip(function.__code__.co_freevars, function.__closure__ or (), strict=False))


def _cells(function: Any) -> Iterator[tuple[str, CellType]]:
    for each in _functions(function):
        yield from _own_cells(each)


def _attributes(function: Any, modules: Sequence[torch.nn.Module]) -> Iterator[dict[str, Any]]:
    """Yield the attributes of the modules, and of the object that a method belongs to."""
    # torch's own modules change nothing but tensors, or keep books of their own (DistributedDataParallel).
    everything = [owner for module in modules for owner in module.modules()]
    owners = {id(each): each for each in everything if not _is_of_torch(each)}
    for part in _parts(function):
        if _is_of_user(type(part)):
            owners[id(part)] = part
    for each in owners.values():
        yield _space(each)


def _named_globals(function: Any) -> Iterator[tuple[dict[str, Any], list[str]]]:
    """Yield the globals of the user's own functions, each with the variables that the code names."""
    for each in _functions(function):
        if _is_users(each.__code__.co_filename):
            space = each.__globals__
            yield (
                space,
                [name for name in _names_of(each.__code__) if _is_variable(space.get(name, _MISSING))],
            )


@functools.lru_cache(maxsize=256)
def _is_users(file: str) -> bool:
    return file == "<string>" or FrameRanks().rank_of_file(file) == USER


def _is_variable(value: Any) -> bool:
    return value is not _MISSING and not isinstance(value, (ModuleType, type, FunctionType, MethodType))


def _names_of(code: CodeType) -> tuple[str, ...]:
    inner = [
        name for constant in code.co_consts if isinstance(constant, CodeType) for name in _names_of(constant)
    ]
    return tuple(dict.fromkeys((*code.co_names, *inner)))
