"""Inputs for one more execution of an op: copies of written tensors, generator states, another core."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TYPE_CHECKING, Any

from samebits._runtime.frames import ignored
from samebits.determinism.deterministic_ops import SWITCHABLE
from samebits.recording.probes.op_calls import (
    WORKSPACES,
    argument_tensors,
    flatten_outputs,
    with_replaced,
    written_arguments,
)
from samebits.recording.replay_results import SkipReason
from samebits.rng import states as rng

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from samebits._torch.schemas import OpTraits
    from samebits.rng.sources import RngSource

# Kernels may take another way through memory that begins elsewhere in a vector or cache line. torch's own
# memory on the CPU begins at multiples of this (c10/core/alignment.h, 2.13.0).
_ALIGNMENT = 64

Call = tuple[tuple[Any, ...], dict[str, Any]]
"""Positional and keyword arguments."""


class NotReplayable(Exception):  # noqa: N818 - a reason to leave a call alone, never an error
    """A call that is not executed again.

    Args:
        reason: why.
    """

    def __init__(self, reason: SkipReason) -> None:
        super().__init__(reason)
        self.reason = reason


def results_of(traits: OpTraits, outcome: Any, call: Call) -> list[Any]:
    """Return the tensors that an op returned, except scratch memory, and others that it wrote to."""
    scratch = WORKSPACES.get(traits.base, ())
    outputs = [output for index, output in enumerate(flatten_outputs(outcome)) if index not in scratch]
    listed = {id(tensor) for tensor in outputs}
    return outputs + [tensor for tensor in written_arguments(traits, *call) if id(tensor) not in listed]


class Copies:
    """The arguments of a call as they were before it.

    Tensors that the op only reads are given as they are. Tensors that share memory with a written one become
    tensors that share one copy of that memory, of just the part that they span.

    Args:
        torch: the module.
        traits: of the op.
        call: its arguments, before it runs.

    Raises:
        NotReplayable: the op writes to memory that is read with its sign changed, so it would treat a copy in
            another way.
    """

    def __init__(self, torch: Any, traits: OpTraits, call: Call) -> None:
        self._torch = torch
        self._call = call
        self._spans: list[_Span] = []
        self._others: list[tuple[Any, Any]] = []
        written = written_arguments(traits, *call)
        if written:
            self._copy(written, argument_tensors(*call))

    def _copy(self, written: list[Any], everything: list[Any]) -> None:
        by_storage: dict[tuple[object, int], list[Any]] = {}
        for tensor in written:
            if _has_plain_memory(tensor):
                by_storage.setdefault(_storage_of(tensor), [])
            elif all(tensor is not known for known, _ in self._others):
                self._others.append((tensor, tensor.clone()))
        seen: set[int] = set()
        for tensor in everything:
            if id(tensor) not in seen and _has_plain_memory(tensor) and _storage_of(tensor) in by_storage:
                seen.add(id(tensor))
                by_storage[_storage_of(tensor)].append(tensor)
        for tensors in by_storage.values():
            if len(tensors) == 1 and _is_alone(tensors[0]):
                self._others.append((tensors[0], tensors[0].clone()))
            else:
                self._spans.append(_Span(self._torch, tensors))

    def restored(self, *, last: bool) -> Call:
        """Return arguments for one more call.

        Args:
            last: no further ones will be asked for, so the copy itself may be written to.
        """
        if not self._spans and not self._others:
            return self._call
        new: dict[int, Any] = {}
        for span in self._spans:
            new.update(span.tensors(last=last))
        for tensor, copy in self._others:
            new[id(tensor)] = copy if last else copy.clone()
        args, kwargs = self._call
        return with_replaced(args, new), {name: with_replaced(v, new) for name, v in kwargs.items()}


class _Span:
    """The part of one storage that some tensors cover."""

    def __init__(self, torch: Any, tensors: list[Any]) -> None:
        self._torch = torch
        self._tensors = tensors
        first = tensors[0]
        if any(tensor.is_neg() for tensor in tensors):
            raise NotReplayable(SkipReason.NEGATED)
        bounds = [_bounds(tensor) for tensor in tensors]
        self._low = min(low for low, _ in bounds)
        high = max(high for _, high in bounds)
        storage = first.untyped_storage()
        length = max(0, min(high, storage.nbytes()) - self._low)
        address = storage.data_ptr() + self._low
        self._pad = address % _ALIGNMENT
        if any((self._pad - self._low) % tensor.element_size() for tensor in tensors):
            self._pad = self._low % 16  # the memory came from elsewhere and is not aligned to its elements
        memory = torch.empty(0, dtype=torch.uint8, device=first.device)
        memory.set_(storage, self._low, (length,), (1,))
        self._bytes = torch.empty(self._pad + length, dtype=torch.uint8, device=first.device)
        self._bytes[self._pad :].copy_(memory)

    def tensors(self, *, last: bool) -> dict[int, Any]:
        """Return the tensors on one copy of the memory, by the identity of the original."""
        memory = self._bytes if last else self._bytes.clone()
        return {id(tensor): self._on(memory, tensor) for tensor in self._tensors}

    def _on(self, memory: Any, tensor: Any) -> Any:
        size = tensor.element_size()
        offset = (self._pad - self._low) // size + tensor.storage_offset()
        copy = self._torch.empty(0, dtype=tensor.dtype, device=tensor.device)
        copy.set_(memory.untyped_storage(), offset, tensor.size(), tensor.stride())
        return copy.conj() if tensor.is_conj() else copy


def _has_plain_memory(tensor: Any) -> bool:
    return str(tensor.layout) == "torch.strided" and not tensor.is_quantized and not tensor.is_nested


def _is_alone(tensor: Any) -> bool:
    """Tell whether a clone is an exact copy: no gaps, no other order, and memory aligned as torch's own."""
    return (
        tensor.is_contiguous()
        and not tensor.data_ptr() % _ALIGNMENT
        and not tensor.is_conj()
        and not tensor.is_neg()
        and tensor.numel() > 0
    )


def _storage_of(tensor: Any) -> tuple[object, int]:
    """Return the identity of a tensor's storage; each empty storage is distinct."""
    base = tensor.untyped_storage().data_ptr()
    return (tensor.device, base) if base else (f"empty {id(tensor)}", 0)


def _bounds(tensor: Any) -> tuple[int, int]:
    """Return the offsets in bytes of a tensor's first byte and of the byte after its last, in its storage."""
    size = tensor.element_size()
    low = tensor.storage_offset() * size
    if not tensor.numel():
        return low, low
    reach = sum((n - 1) * stride for n, stride in zip(tensor.size(), tensor.stride(), strict=True))
    return low, low + (reach + 1) * size


class Generators:
    """Finds the generators of a call.

    Args:
        torch: the module.
    """

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._sources: tuple[RngSource, ...] | None = None

    def of(self, call: Call, tensors: Iterable[Any]) -> States:
        """Return the generators that an op of torch may draw from: the one given to it, or its devices'.

        Raises:
            NotReplayable: a device has generators that torch does not hand out.
        """
        args, kwargs = call
        given = [value for value in (*args, *kwargs.values()) if isinstance(value, self._torch.Generator)]
        if given:
            return States(given, ())
        devices = {tensor.device for tensor in tensors}
        if kwargs.get("device") is not None:
            devices.add(self._torch.device(kwargs["device"]))
        return States([self._torch.default_generator, *self._defaults(devices)], ())

    def everywhere(self, call: Call, tensors: Iterable[Any]) -> States:
        """Return all generators that there are: a foreign op may draw from any.

        Raises:
            NotReplayable: as `of`.
        """
        if self._sources is None:
            self._sources = rng.sources()
        own = self.of(call, tensors)
        return States(own.generators, tuple(source for source in self._sources if source.available()))

    def _defaults(self, devices: Iterable[Any]) -> list[Any]:
        defaults = []
        for device in devices:
            if device.type == "cpu":
                continue
            module = getattr(self._torch, device.type, None)
            generators = getattr(module, "default_generators", None)
            if module is None or not generators:
                raise NotReplayable(SkipReason.GENERATOR)
            index = module.current_device() if device.index is None else device.index
            defaults.append(generators[index])
        return defaults


class States:
    """States of some generators, saved when this is made and by `note_after`.

    Args:
        generators: torch's.
        sources: RNG sources beside them.
    """

    def __init__(self, generators: list[Any], sources: tuple[RngSource, ...]) -> None:
        self.generators = generators
        self._sources = sources
        self._before = self._read()
        self._after = self._before

    def note_after(self) -> None:
        """Save the states that the op left."""
        self._after = self._read()

    def as_before(self) -> None:
        """Restore the states from before the op."""
        self._write(self._before)

    def as_after(self) -> None:
        """Restore the states that the op left."""
        self._write(self._after)

    def are_as_after(self) -> bool:
        """Tell whether the states are now those that the op left."""
        return self._bytes(self._read()) == self._bytes(self._after)

    def _read(self) -> tuple[list[Any], list[tuple[RngSource, bytes]]]:
        saved = []
        for source in self._sources:
            with ignored():  # it can be seeded and not read
                saved.append((source, source.get_state()))
        return [generator.get_state() for generator in self.generators], saved

    def _write(self, states: tuple[list[Any], list[tuple[RngSource, bytes]]]) -> None:
        for source, data in states[1]:
            source.set_state(data)
        for generator, state in zip(self.generators, states[0], strict=True):
            generator.set_state(state)

    @staticmethod
    def _bytes(states: tuple[list[Any], list[tuple[RngSource, bytes]]]) -> list[bytes]:
        return [bytes(state.numpy()) for state in states[0]] + [data for _, data in states[1]]


_SUSPECTS = frozenset(name.strip("_") for name in SWITCHABLE)
_MOST_MOVES, _MOST_MOVES_OF_SUSPECTS = 2, 64


class Cores:
    """Moves the calling thread from core to core while it repeats an op.

    The threads of a kernel often reach shared memory in the same order each time, and then a race does not
    show: with `index_put_(accumulate=True)` on a machine of 2 cores, 0 of 60 repetitions differed in some
    processes, and 24 to 29 of 60 when the core changed from one to the next. Moving does not affect an op
    that repeats its bits.

    A thread is slow on a core that it shares with one that waits for it. So only the first calls of each op
    are moved, and more calls of the ops that torch knows to race.

    It does nothing where torch has one thread, the system cannot bind threads (macOS, Windows), or this
    thread is bound to one core already.

    Args:
        torch: the module.
    """

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._moves: dict[str, int] = {}
        self._possible = sys.platform == "linux"

    @contextlib.contextmanager
    def another(self, op: str) -> Iterator[None]:
        """Run the body on the next core, then give this thread all its cores back.

        The body must start no threads: they would stay on that core.

        Args:
            op: the op that is repeated, such as `aten::index_put_`.
        """
        cores = self._available(op)
        if sys.platform != "linux" or not cores:
            yield
            return
        own, move = set(cores), self._moves[op]
        try:
            os.sched_setaffinity(0, {cores[move % len(cores)]})
        except OSError:  # not allowed here
            self._possible = False
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                os.sched_setaffinity(0, own)

    def _available(self, op: str) -> list[int]:
        """Return the cores of this thread; none when it is not to be moved."""
        moves = self._moves.get(op, 0)
        if sys.platform != "linux" or not self._possible or moves >= _MOST_MOVES_OF_SUSPECTS:
            return []
        if moves >= _MOST_MOVES and op.partition("::")[2].strip("_") not in _SUSPECTS:
            return []
        if self._torch.get_num_threads() == 1:
            return []
        self._moves[op] = moves + 1
        cores = sorted(os.sched_getaffinity(0))
        return cores if len(cores) > 1 else []
