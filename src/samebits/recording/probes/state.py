"""The state of models and optimizers at a boundary, and the part of it that belongs to one optimizer."""

from __future__ import annotations

import threading
import weakref
from itertools import chain, count
from typing import TYPE_CHECKING, Any

from samebits._torch.core import is_virtual
from samebits.digest import DigestPlan, digest_bytes
from samebits.digest.pending import read
from samebits.recording._recorder import describe, is_tensor
from samebits.recording.probes.modules import instances, numbered
from samebits.records.events import Ownership, TensorInfo
from samebits.records.kinds import Role

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from samebits.digest.pending import Digests
    from samebits.recording._recorder import Recorder
    from samebits.recording.probes.modules import ModuleRegistry


def _owned_by(number: int, held: Collection[int], tensors: Sequence[Any], registry: ModuleRegistry) -> str:
    """Return what belongs to an optimizer, as the arguments of its `step` event.

    These are its parameters and, in each model that holds some of them, all tensors of the smallest module
    that holds them all: the running statistics of a frozen normalization belong to it too.

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
    """Return the path of the module of each tensor, by identity."""
    paths: dict[int, tuple[str, ...]] = {}
    for path, module in registry.named():
        own = vars(module)
        for tensor in _tensors(own["_parameters"], own["_buffers"]):
            paths.setdefault(id(tensor), tuple(path.split(".")) if path else ())
    return paths


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


class Part:
    """Tensors that are digested together again and again, with their descriptions.

    Args:
        recorder: gives out layout ids.
        entries: (role, name, tensor).
        extra: descriptions and digests of state that is not a tensor.
        before: a part that comes before these, itself without `extra`.
    """

    def __init__(
        self,
        recorder: Recorder,
        entries: list[tuple[Role, str, Any]],
        extra: list[tuple[TensorInfo, bytes]],
        before: Part | None = None,
    ) -> None:
        own = [tensor for _, _, tensor in entries]
        infos = [describe(role, name, tensor) for role, name, tensor in entries]
        infos += [info for info, _ in extra]
        self.tensors: list[Any] = own if before is None else before.tensors + own
        self.infos: tuple[TensorInfo, ...] = (() if before is None else before.infos) + tuple(infos)
        self.extra = b"".join(digest for _, digest in extra)
        self.layout = recorder.writer.layout(self.infos)
        self.parameters = [(name, tensor) for role, name, tensor in entries if role == Role.PARAM]
        self._before = before
        self._plan = DigestPlan(own)

    def digest(self) -> bytes:
        """Return the digests of all, parallel to `infos`."""
        return read(self.begin())

    def begin(self) -> Digests:
        """Return the digests of all, parallel to `infos`; a GPU may still be computing them."""
        digests = self._plan.begin() + self.extra
        return digests if self._before is None else self._before.begin() + digests


class StateTracker:
    """Collects parameters, buffers, gradients and optimizer state at a boundary.

    Args:
        recorder: where layouts are interned.
        registry: the modules of the run.
    """

    def __init__(self, recorder: Recorder, registry: ModuleRegistry) -> None:
        self._recorder = recorder
        self.registry = registry
        self.leaves: dict[int, tuple[str, weakref.ref[Any]]] = {}
        self._names: dict[int, str] = {}
        self._dicts: list[tuple[Role, str, dict[str, Any]]] = []
        self._seen_version = -1
        self._optimizers: dict[int, weakref.ref[Any]] = {}
        self._older_optimizers: list[weakref.ref[Any]] = []
        self._parts: dict[Any, tuple[Any, Part]] = {}
        self._stale = True
        self._numbers: dict[int, int] = {}
        self._next_number = count().__next__
        self._owned: dict[int, tuple[Part, int, str]] = {}
        self._lock = threading.RLock()  # a script may train in several threads
        registry.on_forget = self._release

    def find_optimizers(self, optimizer_class: type[Any]) -> None:
        """Look for optimizers that exist already; they count once they take part."""
        self._older_optimizers = [weakref.ref(optimizer) for optimizer in instances(optimizer_class)]

    def add_optimizer(self, optimizer: Any) -> None:
        """Remember an optimizer: its parameters belong to the state."""
        known = self._optimizers.get(id(optimizer))
        if known is None or known() is not optimizer:
            key = id(optimizer)

            def forget(reference: weakref.ref[Any]) -> None:
                if self._optimizers.get(key) is reference:
                    del self._optimizers[key]
                    self._parts.pop(key, None)
                    self._numbers.pop(key, None)
                    self._release()

            self._optimizers[key] = weakref.ref(optimizer, forget)
            self._numbers[key] = self._next_number()
            self._stale = True
            for group in optimizer.param_groups:
                for parameter in group["params"]:
                    if not self.registry.holds(parameter):
                        self.registry.adopt(parameter)

    def is_optimized(self, may_read: Callable[[Any], bool] | None) -> bool:
        """Tell whether some optimizer, older ones too, holds a known parameter that has a gradient.

        Args:
            may_read: whether the gradient of a parameter may be read; of others it is not asked for. None for
                all.
        """
        ids = {id(tensor) for _, tensor in self._readable(may_read) if tensor.grad is not None}
        optimizers = chain(self._optimizers.values(), self._older_optimizers)
        return any(
            id(parameter) in ids
            for optimizer in (reference() for reference in optimizers)
            if optimizer is not None
            for group in optimizer.param_groups
            for parameter in group["params"]
        )

    def learn(self, leaf: Any, name: str) -> bool:
        """Make sure that a trained tensor is known; return whether no module or optimizer holds it.

        It is remembered while the script holds it, under `name` or else a number.
        """
        if self.knows(leaf) or self.registry.adopt(leaf):
            return False
        taken = {other for other, _ in self._living()} | set(self._names.values())
        choices = (
            chain([name], map(f"{name}#{{}}".format, count(2))) if name else map("leaf{}".format, count())
        )
        free = next(choice for choice in choices if choice not in taken)
        self.leaves.pop(id(leaf), None)
        self.leaves[id(leaf)] = (free, weakref.ref(leaf))
        return True

    def knows(self, tensor: Any) -> bool:
        """Tell whether a tensor belongs to a module or an optimizer, or was seen before."""
        self._main()
        if id(tensor) in self._names:
            return True
        return id(tensor) in self.leaves and self.leaves[id(tensor)][1]() is tensor

    def model(self) -> Part:
        """Return parameters and buffers of all modules, parameters of all optimizers, and bare leaves."""
        with self._lock:
            part = self._checked_main()
        # Not kept: an input that requires grad (an attack, a saliency map) lives as long as the script wants.
        entries = [(Role.PARAM, name, leaf) for name, leaf in self._living()]
        return Part(self._recorder, _uniquely(entries, self._names.values()), [], part) if entries else part

    def _main(self) -> Part:
        """Return the state of modules and optimizers, looked up anew where something was made or deleted."""
        known = self._parts.get("model")
        if known is None or self._stale or self._seen_version != self.registry.version:
            with self._lock:
                return self._checked_main()
        return known[1]

    def _checked_main(self) -> Part:
        # Only local values are used here: a garbage collection can call `_release` at any time.
        dicts = self._dicts if self._seen_version == self.registry.version else self._learn_modules()
        optimizers = [o for o in (ref() for ref in list(self._optimizers.values())) if o is not None]
        held = [group["params"] for optimizer in optimizers for group in optimizer.param_groups]
        key = tuple(map(id, chain(
            chain.from_iterable(d.values() for _, _, d in dicts), chain.from_iterable(held),
        )))  # fmt: skip
        known = self._parts.get("model")
        return known[1] if known is not None and known[0] == key else self._build_main(key, dicts, optimizers)

    def _living(self) -> list[tuple[str, Any]]:
        """Return (name, tensor) of the living trained tensors that no module or optimizer holds."""
        if not self.leaves:
            return []
        leaves = [(key, name, reference()) for key, (name, reference) in self.leaves.items()]
        for key, _, leaf in leaves:
            if leaf is None:
                del self.leaves[key]
        return [(name, leaf) for key, name, leaf in leaves if leaf is not None and key not in self._names]

    def _release(self) -> None:
        """Release a model or optimizer that the script no longer holds."""
        self._parts.pop("model", None)
        self._owned.clear()
        self._dicts, self._seen_version = [], -1

    def gradients(
        self, may_read: Callable[[Any], bool] | None, optimizer: Any = None
    ) -> list[tuple[str, Any]]:
        """Return (name, gradient) of every known parameter that has one.

        Args:
            may_read: whether the gradient of a parameter may be read; the others are left out. None for all.
            optimizer: only of parameters that it holds.
        """
        known = self._readable(may_read)
        if optimizer is not None:
            held = {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}
            known = [(name, tensor) for name, tensor in known if id(tensor) in held]
        return [(name, g) for name, t in known if (g := t.grad) is not None]

    def _readable(self, may_read: Callable[[Any], bool] | None) -> list[tuple[str, Any]]:
        known = [*self._main().parameters, *self._living()]
        return known if may_read is None else [each for each in known if may_read(each[1])]

    def optimizers(self) -> list[Any]:
        """Return the optimizers that took part or were made while recording, in that order."""
        return [o for o in (reference() for reference in list(self._optimizers.values())) if o is not None]

    def optimizer(self, optimizer: Any) -> Part:
        """Return the state of one optimizer, in the order in which it was made."""
        values = [value for state in optimizer.state.values() for value in state.values()]
        known = self._parts.get(id(optimizer))
        key = list(map(id, values))
        if known is not None and known[0] == key:
            return known[1]
        leaves = [
            leaf
            for parameter, state in optimizer.state.items()
            for leaf in _flatten(self._name_of(parameter), state)
        ]
        entries = [(Role.OPTIMIZER, n, t) for n, t in leaves if is_tensor(t) and not is_virtual(t)]
        extra = [_scalar_entry(name, value) for name, value in leaves if not is_tensor(value)]
        part = Part(self._recorder, entries, extra)
        if all(value is None or is_tensor(value) for value in values):
            # Held, so that no other object gets the identity of one of them.
            self._parts[id(optimizer)] = (key, part)
        return part

    def owned(self, optimizer: Any, model: Part) -> str:
        """Return which tensors of the model part belong to an optimizer; empty for all of the first one's."""
        size = sum([len(group["params"]) for group in optimizer.param_groups])
        known = self._owned.get(id(optimizer))
        if known is not None and known[0] is model and known[1] == size:
            return known[2]
        held = {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}
        text = _owned_by(self._numbers[id(optimizer)], held, model.tensors, self.registry)
        # Any other part holds trained tensors that only the script keeps alive.
        if self._parts.get("model", (None, None))[1] is model:
            self._owned[id(optimizer)] = (model, size, text)
        return text

    def _name_of(self, parameter: Any) -> str:
        leaf = self.leaves.get(id(parameter))
        return self._names.get(id(parameter), "?" if leaf is None else leaf[0])

    def _learn_modules(self) -> list[tuple[Role, str, dict[str, Any]]]:
        version, dicts = self.registry.version, []
        for path, module in self.registry.named():
            own = vars(module)
            dicts.append((Role.PARAM, path, own["_parameters"]))
            dicts.append((Role.BUFFER, path, own["_buffers"]))
        self._seen_version, self._dicts = version, dicts
        return dicts

    def _build_main(
        self, key: Any, dicts: list[tuple[Role, str, dict[str, Any]]], optimizers: list[Any]
    ) -> Part:
        by_id: dict[int, tuple[Role, str, Any]] = {}
        for entry in chain(_module_entries(dicts), _held_entries(optimizers)):
            by_id.setdefault(id(entry[2]), entry)
        entries = _uniquely([entry for entry in by_id.values() if not is_virtual(entry[2])], ())
        self._names = {id(tensor): name for _, name, tensor in entries}
        part = Part(self._recorder, entries, [])
        # A lazy parameter stays the same object when it gets its contents: then all is looked up each time.
        self._stale = len(entries) < len(by_id)
        self._parts["model"] = (None if self._stale else key, part)
        self._owned.clear()
        return part


def _uniquely(entries: list[tuple[Role, str, Any]], taken: Iterable[str]) -> list[tuple[Role, str, Any]]:
    """Give every tensor another name; see `numbered`."""
    names = numbered([name for _, name, _ in entries], taken)
    return [(role, name, tensor) for (role, _, tensor), name in zip(entries, names, strict=True)]


def _module_entries(dicts: list[tuple[Role, str, dict[str, Any]]]) -> Iterator[tuple[Role, str, Any]]:
    for role, path, tensors in dicts:
        for name, tensor in tensors.items():
            if tensor is not None:
                yield role, f"{path}.{name}" if path else name, tensor


def _held_entries(optimizers: list[Any]) -> Iterator[tuple[Role, str, Any]]:
    for optimizer in optimizers:
        for g, group in enumerate(optimizer.param_groups):
            for i, tensor in enumerate(group["params"]):
                yield Role.PARAM, f"{type(optimizer).__name__}.{g}.{i}", tensor


def _flatten(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _flatten(f"{name}.{key}", item)
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield from _flatten(f"{name}.{index}", item)
    elif is_tensor(value) or isinstance(value, (int, float, complex)):
        yield name, value


def _scalar_entry(name: str, value: Any) -> tuple[TensorInfo, bytes]:
    return TensorInfo(Role.OPTIMIZER, name, type(value).__name__, ()), digest_bytes(repr(value).encode())
