"""Python values that a step changes: counters, lists and references, saved and put back.

A step function often counts or collects: `seen += 1`, `losses.append(loss.item())`, `self.hidden = h`.
Executed again, it would do so twice.
"""

from __future__ import annotations

import functools
from collections import deque
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any

import torch

from samebits._runtime.frames import USER, FrameRanks
from samebits._torch.core import version_of
from samebits.errors import SamebitsError
from samebits.replay_guard._tensor_state import copy_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_CONTAINERS = (list, dict, set, deque, bytearray)
_DEEPEST = 3
_MOST_ELEMENTS = 100_000
_SMALL_BYTES = 1 << 20
# Tables of a module that hold what is saved elsewhere, or hooks.
_TORCH_OWN = frozenset(vars(torch.nn.Module()))
_MISSING = object()


class PlainState:
    """The values of variables at one moment, as far as they are plain.

    References are put back as they were. Of lists, dicts, sets and deques the contents are put back too.
    Small tensors are copied; larger ones are watched.

    Args:
        function: its closure, the globals that it names, and the attributes of its object are variables.
        modules: so are the attributes of modules.
        known: identities of tensors that are saved elsewhere.
    """

    def __init__(self, function: Any, modules: Sequence[torch.nn.Module], known: set[int]) -> None:
        self._known = known
        self._cells: list[tuple[CellType, Any]] = []
        self._names: list[tuple[dict[str, Any], str, Any]] = []
        self._owners: list[tuple[dict[str, Any], set[str]]] = []
        self._containers: list[tuple[Any, Any]] = []
        self._tensors: list[tuple[str, torch.Tensor, torch.Tensor | int]] = []
        self._seen: set[int] = set()
        for variables in _attributes(function, modules):
            self._owners.append((variables, set(variables)))
            self._note(variables, [name for name in variables if name not in _TORCH_OWN])
        for variables, names in _named_globals(function):
            self._note(variables, names)
        for name, cell in _cells(function):
            value = _contents(cell)
            self._cells.append((cell, value))
            self._look(name, value)

    def restore(self) -> None:
        """Put everything back."""
        for cell, value in self._cells:
            if value is not _MISSING and _contents(cell) is not value:
                cell.cell_contents = value
        for variables, names in self._owners:
            for name in [name for name in variables if name not in names and name not in _TORCH_OWN]:
                del variables[name]
        for variables, name, value in self._names:
            if variables.get(name, _MISSING) is not value:
                variables[name] = value
        for container, contents in self._containers:
            _refill(container, contents)
        with torch.no_grad():
            for _, tensor, saved in self._tensors:
                if isinstance(saved, torch.Tensor) and tensor.shape == saved.shape:
                    tensor.detach().copy_(saved)

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

    def _note(self, variables: dict[str, Any], names: list[str]) -> None:
        for name in names:
            self._names.append((variables, name, variables[name]))
            self._look(name, variables[name])

    def _look(self, name: str, value: Any, depth: int = 0) -> None:
        if id(value) in self._seen or id(value) in self._known:
            return
        if isinstance(value, torch.Tensor):
            self._seen.add(id(value))
            self._tensors.append((name, value, _copy_or_version(value)))
        elif type(value) in _CONTAINERS or isinstance(value, (list, dict, set, deque)):
            self._seen.add(id(value))
            if len(value) <= _MOST_ELEMENTS:
                self._containers.append((value, _shallow(value)))
                if depth < _DEEPEST and len(value) <= 256:
                    for item in _elements(value):
                        self._look(name, item, depth + 1)


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


def _shallow(container: Any) -> Any:
    return (
        dict(container)
        if isinstance(container, dict)
        else container[:]
        if isinstance(container, bytearray)
        else list(container)
    )


def _refill(container: Any, contents: Any) -> None:
    """Put elements back where they are not the same objects any more."""
    if isinstance(container, dict):
        now = dict(container)
        if list(now) == list(contents) and all(now[key] is contents[key] for key in contents):
            return
        container.clear()
        container.update(contents)
        return
    if len(container) == len(contents) and all(a is b for a, b in zip(container, contents, strict=True)):
        return
    if isinstance(container, (list, bytearray)):
        container[:] = contents
        return
    container.clear()
    container.update(contents) if isinstance(container, set) else container.extend(contents)


def _functions(function: Any) -> Iterator[FunctionType]:
    """Yield the functions that make up a callable: through methods, partials and decorators."""
    waiting, seen = [function], set()
    while waiting:
        each = waiting.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        if isinstance(each, FunctionType):
            yield each
            waiting += [value for _, cell in _own_cells(each) if callable(value := _contents(cell))]
        waiting += [
            inner
            for name in ("func", "__func__", "__wrapped__")
            if callable(inner := getattr(each, name, None))
        ]


def _own_cells(function: FunctionType) -> list[tuple[str, CellType]]:
    return list(zip(function.__code__.co_freevars, function.__closure__ or (), strict=False))


def _cells(function: Any) -> Iterator[tuple[str, CellType]]:
    for each in _functions(function):
        yield from _own_cells(each)


def _attributes(function: Any, modules: Sequence[torch.nn.Module]) -> Iterator[dict[str, Any]]:
    """Yield the attributes of the modules, and of the object that a method belongs to."""
    # torch's own modules change nothing but tensors, or keep books of their own (DistributedDataParallel).
    everything = [owner for module in modules for owner in module.modules()]
    owners = {id(each): each for each in everything if not type(each).__module__.startswith("torch.")}
    owner = getattr(function, "__self__", None)
    if owner is not None and not isinstance(owner, (type, ModuleType)):
        owners[id(owner)] = owner
    for each in owners.values():
        space = getattr(each, "__dict__", None)
        if isinstance(space, dict):
            yield space


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
    return value is not _MISSING and not isinstance(
        value, (ModuleType, type, FunctionType, MethodType, torch.nn.Module)
    )


def _names_of(code: CodeType) -> tuple[str, ...]:
    inner = [
        name for constant in code.co_consts if isinstance(constant, CodeType) for name in _names_of(constant)
    ]
    return tuple(dict.fromkeys((*code.co_names, *inner)))
