"""Which tensors make up the state of a run, and what they are called."""

from __future__ import annotations

import weakref
from itertools import chain
from typing import TYPE_CHECKING, Any

from samebits.digest import DigestPlan, digest_bytes
from samebits.recording.events import TensorInfo
from samebits.recording.probes.modules import instances
from samebits.recording.recorder import describe, is_tensor
from samebits.recording.torch_private import is_virtual

if TYPE_CHECKING:
    from collections.abc import Iterator

    from samebits.recording.probes.modules import ModuleRegistry
    from samebits.recording.recorder import Recorder


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
        entries: list[tuple[str, str, Any]],
        extra: list[tuple[TensorInfo, bytes]],
        before: Part | None = None,
    ) -> None:
        own = [tensor for _, _, tensor in entries]
        infos = [describe(role, name, tensor) for role, name, tensor in entries]
        infos += [info for info, _ in extra]
        self.tensors = own if before is None else before.tensors + own
        self.infos = tuple(infos) if before is None else before.infos + tuple(infos)
        self.extra = b"".join(digest for _, digest in extra)
        self.layout = recorder.writer.layout(self.infos)
        self._before = before
        self._plan = DigestPlan(own)

    def digest(self) -> bytes:
        """Digests of all, parallel to `infos`."""
        digests = self._plan.digest() + self.extra
        return digests if self._before is None else self._before.digest() + digests


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
        self._dicts: list[tuple[str, str, dict[str, Any]]] = []
        self._seen_version = -1
        self._optimizers: dict[int, weakref.ref[Any]] = {}
        self._older_optimizers: list[weakref.ref[Any]] = []
        self._parts: dict[Any, tuple[Any, Part]] = {}
        self._parameters: list[tuple[str, Any]] = []
        self._stale = True
        registry.on_forget = self._release

    def find_optimizers(self, optimizer_class: type[Any]) -> None:
        """Look for optimizers that exist already; they count once they take part."""
        self._older_optimizers = [weakref.ref(found) for found in instances(optimizer_class)]

    def add_optimizer(self, optimizer: Any) -> None:
        """Remember an optimizer: its parameters belong to the state."""
        known = self._optimizers.get(id(optimizer))
        if known is None or known() is not optimizer:
            key = id(optimizer)

            def forget(reference: weakref.ref[Any]) -> None:
                if self._optimizers.get(key) is reference:
                    del self._optimizers[key]
                    self._parts.pop(key, None)
                    self._release()

            self._optimizers[key] = weakref.ref(optimizer, forget)
            self._stale = True
            for group in optimizer.param_groups:
                for parameter in group["params"]:
                    if not self.registry.holds(parameter):
                        self.registry.adopt(parameter)

    def is_optimized(self) -> bool:
        """Whether some optimizer, older ones too, holds a known parameter that has a gradient."""
        known = chain(self._parameters, self._living())
        ids = {id(tensor) for _, tensor in known if tensor.grad is not None}
        optimizers = chain(self._optimizers.values(), self._older_optimizers)
        return any(
            id(parameter) in ids
            for optimizer in (reference() for reference in optimizers)
            if optimizer is not None
            for group in optimizer.param_groups
            for parameter in group["params"]
        )

    def learn(self, leaf: Any, name: str) -> bool:
        """Make sure that a trained tensor is known; give whether it is held by no module or optimizer.

        It is remembered while the script holds it, under `name` or else a number.
        """
        if self.knows(leaf) or self.registry.adopt(leaf):
            return False
        taken = {name for name, _ in self._living()}
        free = name or next(text for text in map("leaf{}".format, count()) if text not in taken)
        self.leaves.pop(id(leaf), None)
        self.leaves[id(leaf)] = (free, weakref.ref(leaf))
        return True

    def knows(self, tensor: Any) -> bool:
        """Whether a tensor belongs to a module, an optimizer or was found before."""
        if self._stale or self._seen_version != self.registry.version:
            self.model()
        if id(tensor) in self._names:
            return True
        return id(tensor) in self.leaves and self.leaves[id(tensor)][1]() is tensor

    def model(self) -> Part:
        """Parameters and buffers of all modules, parameters of all optimizers, and bare leaves."""
        if self._seen_version != self.registry.version:
            self._learn_modules()
        optimizers = [o for o in (ref() for ref in self._optimizers.values()) if o is not None]
        held = [group["params"] for optimizer in optimizers for group in optimizer.param_groups]
        key = tuple(map(id, chain(
            chain.from_iterable(d.values() for _, _, d in self._dicts), chain.from_iterable(held),
        )))  # fmt: skip
        part = self._cached("model", key) or self._build_model(key, optimizers)
        # Not kept: an input that requires grad (an attack, a saliency map) lives as long as the script wants.
        entries = [("param", name, leaf) for name, leaf in self._living() if id(leaf) not in self._names]
        return Part(self._recorder, _uniquely(entries, self._names.values()), [], part) if entries else part

    def _living(self) -> list[tuple[str, Any]]:
        """(name, tensor) of the trained tensors that no module or optimizer holds; forgets those that died."""
        if not self.leaves:
            return []
        found = [(key, name, reference()) for key, (name, reference) in self.leaves.items()]
        for key, _, leaf in found:
            if leaf is None:
                del self.leaves[key]
        return [(name, leaf) for _, name, leaf in found if leaf is not None]

    def _release(self) -> None:
        """Hold nothing of a model or optimizer that the script has let go."""
        self._parts.pop("model", None)
        self._dicts, self._parameters, self._names = [], [], {}
        self._seen_version, self._stale = -1, True

    def gradients(self) -> list[tuple[str, Any]]:
        """(name, gradient) of every known parameter that has one."""
        if self._stale or self._seen_version != self.registry.version:
            self.model()
        return [(name, g) for name, g in [(name, t.grad) for name, t in self._parameters] if g is not None]

    def optimizer(self, optimizer: Any) -> Part:
        """The state of one optimizer, in the order in which it was made."""
        values = [value for state in optimizer.state.values() for value in state.values()]
        known = self._parts.get(id(optimizer))
        key = list(map(id, values))
        if known is not None and known[0] == key:
            return known[1]
        leaves = [
            leaf
            for parameter, state in optimizer.state.items()
            for leaf in _flatten(self._names.get(id(parameter), "?"), state)
        ]
        entries = [("optimizer", n, t) for n, t in leaves if is_tensor(t) and not is_virtual(t)]
        extra = [_scalar_entry(name, value) for name, value in leaves if not is_tensor(value)]
        part = Part(self._recorder, entries, extra)
        if all(value is None or is_tensor(value) for value in values):
            # Held, so that no other object gets the identity of one of them.
            self._parts[id(optimizer)] = (key, part)
        return part

    def _cached(self, owner: Any, key: Any) -> Part | None:
        known = self._parts.get(owner)
        return known[1] if known is not None and known[0] == key else None

    def _keep(self, owner: Any, key: Any, part: Part) -> Part:
        self._parts[owner] = (key, part)
        return part

    def _learn_modules(self) -> None:
        self._seen_version = self.registry.version
        self._dicts = []
        for path, module in self.registry.named():
            own = vars(module)
            self._dicts.append(("param", path, own["_parameters"]))
            self._dicts.append(("buffer", path, own["_buffers"]))

    def _build_model(self, key: Any, optimizers: list[Any], leaves: list[tuple[str, Any]]) -> Part:
        names: dict[int, str] = {}
        entries: list[tuple[str, str, Any]] = []
        taken: dict[str, int] = {}
        for role, name, tensor in chain(_module_entries(self._dicts), _held_entries(optimizers),
                                        (("param", name, leaf) for name, leaf in leaves)):  # fmt: skip
            if id(tensor) in names or is_virtual(tensor):
                continue
            taken[name] = taken.get(name, 0) + 1
            unique = name if taken[name] == 1 else f"{name}#{taken[name]}"
            names[id(tensor)] = unique
            entries.append((role, unique, tensor))
        self._names = names
        self._parameters = [(name, tensor) for role, name, tensor in entries if role == "param"]
        self._stale = False
        return self._keep("model", key, Part(self._recorder, entries, []))


def _module_entries(dicts: list[tuple[str, str, dict[str, Any]]]) -> Iterator[tuple[str, str, Any]]:
    for role, path, tensors in dicts:
        for name, tensor in tensors.items():
            if tensor is not None:
                yield role, f"{path}.{name}" if path else name, tensor


def _held_entries(optimizers: list[Any]) -> Iterator[tuple[str, str, Any]]:
    for optimizer in optimizers:
        for g, group in enumerate(optimizer.param_groups):
            for i, tensor in enumerate(group["params"]):
                yield "param", f"{type(optimizer).__name__}.{g}.{i}", tensor


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
    return TensorInfo("optimizer", name, type(value).__name__, ()), digest_bytes(repr(value).encode())
