"""Which part of the state belongs to one optimizer: two threads may train two models at the same time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from samebits.recording.events import Ownership

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from samebits.recording.probes.modules import ModuleRegistry


def owned_by(number: int, held: Collection[int], tensors: Sequence[Any], registry: ModuleRegistry) -> str:
    """What belongs to an optimizer, as the arguments of its `step` event.

    That are its parameters, and in each model that holds some of them all tensors of the smallest module that
    holds them all: the running statistics of a frozen normalization belong to it too.

    Args:
        number: of the optimizer, in order of creation.
        held: identities of its parameters.
        tensors: the model part of the state.
        registry: knows the modules.
    """
    paths = _paths(registry)
    heads: dict[str, tuple[str, ...]] = {}
    for tensor in tensors:
        path = paths.get(id(tensor)) if id(tensor) in held else None
        if path is not None:
            root = _root(path, registry)
            heads[root] = _common(heads[root], path) if root in heads else path
    own = [
        position
        for position, tensor in enumerate(tensors)
        if id(tensor) in held or _is_below(paths.get(id(tensor)), heads, registry)
    ]
    return Ownership(number, None if len(own) == len(tensors) else tuple(own)).to_text()


def _paths(registry: ModuleRegistry) -> dict[int, tuple[str, ...]]:
    """The path of the module of each tensor, by identity."""
    found: dict[int, tuple[str, ...]] = {}
    for path, module in registry.named():
        own = vars(module)
        for tensor in _tensors(own["_parameters"], own["_buffers"]):
            found.setdefault(id(tensor), tuple(path.split(".")) if path else ())
    return found


def _tensors(*tables: dict[str, Any]) -> Iterable[Any]:
    return [tensor for table in tables for tensor in list(table.values()) if tensor is not None]


def _root(path: tuple[str, ...], registry: ModuleRegistry) -> str:
    return path[0] if registry.several_roots else ""


def _common(a: tuple[str, ...], b: tuple[str, ...]) -> tuple[str, ...]:
    length = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    return a[:length]


def _is_below(
    path: tuple[str, ...] | None, heads: dict[str, tuple[str, ...]], registry: ModuleRegistry
) -> bool:
    head = None if path is None else heads.get(_root(path, registry))
    return path is not None and head is not None and path[: len(head)] == head
