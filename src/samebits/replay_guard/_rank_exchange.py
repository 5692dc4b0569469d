"""What ranks tell each other about a step, and the step of one rank executed on all."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import torch
import torch.distributed as dist

from samebits._runtime.frames import pass_on
from samebits.replay_guard._tensor_state import named_buffers, tensors_in
from samebits.rng.states import seed_sources

if TYPE_CHECKING:
    from collections.abc import Sequence

    from samebits.replay_guard._step import Scope
    from samebits.rng.code_generators import CodeStates

_T = TypeVar("_T")


class Ranks:
    """The ranks that train together; one, where there is no process group.

    Args:
        group: the process group; None for the default one.

    Attributes:
        size: how many there are.
        rank: of this process, among them.
        numbers: of each in the whole training, which is what launchers and logs call its rank.
    """

    def __init__(self, group: Any = None) -> None:
        ready = dist.is_available() and dist.is_initialized()
        self._group = group
        self.size = dist.get_world_size(group) if ready else 1
        self.rank = dist.get_rank(group) if ready else 0
        self.numbers = tuple(range(self.size) if group is None else dist.get_process_group_ranks(group))

    @property
    def number(self) -> int:
        """The rank of this process in the whole training."""
        return self.numbers[self.rank]

    def gather(self, value: _T) -> list[_T]:
        """Return the value of every rank, in their order."""
        if self.size == 1:
            return [value]
        values: list[Any] = [None] * self.size
        dist.all_gather_object(values, value, group=self._group)
        return values

    def from_rank(self, rank: int, value: _T | None) -> _T | None:
        """Return the value of one rank on all.

        Args:
            rank: whose.
            value: its value; ignored on the others.
        """
        if self.size == 1:
            return value
        held = [value]
        dist.broadcast_object_list(held, src=self.numbers[rank], group=self._group)
        return held[0]


@dataclass(frozen=True, slots=True)
class SharedCall:
    """Everything that makes the step of one rank the same on another: arguments, buffers, generators.

    Args:
        arguments: positional and keyword arguments.
        buffers: contents of the buffers, in the order of the modules.
        held: states of generator objects that the step holds, by their paths.
        seed: what all other generators are seeded with.
    """

    arguments: Any
    buffers: list[torch.Tensor]
    held: dict[str, bytes]
    seed: int

    def to_bytes(self) -> bytes | None:
        """Return it as bytes for another rank; None where an argument cannot be sent."""
        stream = io.BytesIO()
        try:
            torch.save((self.arguments, self.buffers, self.held, self.seed), stream)
        except Exception as error:  # noqa: BLE001 - pickle raises what the user's classes raise
            pass_on(error)
            return None
        return stream.getvalue()

    @classmethod
    def from_bytes(cls, data: bytes, device: torch.device) -> SharedCall:
        """Read what `to_bytes` of a rank of the same job gave.

        Args:
            data: the bytes.
            device: where tensors that were on an accelerator there are put here.
        """
        restore: Any = torch.serialization.default_restore_location  # torch gives it no types

        def place(storage: Any, location: str) -> Any:
            target = location if location == "cpu" else str(device)
            return restore(storage, target)

        fields = torch.load(io.BytesIO(data), map_location=place, weights_only=False)
        return cls(*fields)


def shared_call(scope: Scope, arguments: Any, states: CodeStates, seed: int) -> SharedCall:
    """Return the call of this rank for the others, as it is before the step."""
    held = {name: data for name, data in states.named().items() if name.startswith("generator:")}
    return SharedCall(_detached(arguments), [b.detach() for _, b in named_buffers(scope.modules)], held, seed)


def prepare(scope: Scope, call: SharedCall, states: CodeStates) -> None:
    """Give this rank the buffers and generators of a call."""
    with torch.no_grad():
        for (_, own), other in zip(named_buffers(scope.modules), call.buffers, strict=True):
            own.detach().copy_(other)
    seed_sources(call.seed)
    for source, _ in states.saved:
        if source.name in call.held:
            source.set_state(call.held[source.name])


def device_of(modules: Sequence[torch.nn.Module], arguments: Any) -> torch.device:
    """Return the device that a step runs on: that of its first parameter, else of its first argument."""
    first: torch.Tensor | None = next(
        (parameter for module in modules for parameter in module.parameters()), None
    )
    first = next(tensors_in(arguments), None) if first is None else first
    return torch.device("cpu") if first is None else first.device


def _detached(arguments: Any) -> Any:
    """Return arguments whose tensors can be sent: a tensor inside a graph cannot."""
    if isinstance(arguments, torch.Tensor) and not arguments.is_leaf:
        return arguments.detach().requires_grad_(arguments.requires_grad)
    if type(arguments) in (list, tuple):
        return type(arguments)(map(_detached, arguments))
    return (
        {key: _detached(value) for key, value in arguments.items()} if type(arguments) is dict else arguments
    )
