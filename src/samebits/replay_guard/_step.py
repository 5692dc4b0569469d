"""One step: the state before it, its results, and further executions that leave no trace."""

from __future__ import annotations

import contextlib
import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import torch

from samebits._runtime.frames import pass_on
from samebits.digest import digest_many
from samebits.errors import SamebitsError
from samebits.replay_guard._audit import Audit
from samebits.replay_guard._gradients import Averaging, Incoming
from samebits.replay_guard._plain_state import PlainState
from samebits.replay_guard._tensor_state import (
    Buffers,
    Contents,
    Gradients,
    copy_of,
    flatten,
    named_buffers,
    named_parameters,
    tensors_in,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from samebits.rng.code_generators import CodeGenerators, CodeStates


_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Scope:
    """What a step works on.

    Args:
        modules: hold its parameters and buffers.
        function: what is called; its variables are put back.
        arguments: their tensors are put back.
        generators: finds what it draws from.
        incoming: compare gradients on their way to the parameters, not what is accumulated there.
    """

    modules: tuple[torch.nn.Module, ...]
    function: Any
    arguments: Any
    generators: CodeGenerators
    incoming: bool


@dataclass(frozen=True, slots=True)
class Result:
    """What an execution gave.

    Args:
        names: of the tensors: outputs, gradients, buffers.
        digests: 16 bytes for each.
        tensors: their contents, for measuring a difference.
        generators: RNG source -> its state afterwards.
        error: what it raised; empty if it did not.
    """

    names: tuple[str, ...]
    digests: bytes
    tensors: tuple[torch.Tensor, ...] = field(default=(), compare=False, repr=False)
    generators: dict[str, bytes] = field(default_factory=dict, compare=False, repr=False)
    error: str = ""

    @property
    def key(self) -> tuple[tuple[str, ...], bytes, str]:
        """What must be equal in all executions."""
        return self.names, self.digests, self.error


class GuardedStep:
    """A step that may be executed again.

    Take it before the step begins. Then `first`, `first_done`, any number of `again`, and `finish`.

    Args:
        scope: what the step works on.

    Attributes:
        result: what the first execution gave.
        foreign: what audited executions wrote to that is not put back.
    """

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._arguments = list({id(each): each for each in tensors_in(scope.arguments)}.values())
        self._parameters = named_parameters(scope.modules)
        own = {id(each) for _, each in self._parameters}
        leaves = [
            each for each in self._arguments if each.is_leaf and each.requires_grad and id(each) not in own
        ]
        self._leaves = [*self._parameters, *((f"of argument {n}", leaf) for n, leaf in enumerate(leaves))]
        self._incoming = Incoming(self._leaves) if scope.incoming else None
        self._averaging = Averaging(scope.modules)
        self._before = self._state(copied=True)
        self._weights = self._digest_parameters()
        self._after: _State | None = None
        self.result = Result((), b"")
        self.foreign: tuple[str, ...] = ()

    @contextlib.contextmanager
    def first(self) -> Iterator[None]:
        """Execute the step in the body for the first time."""
        with self._collecting():
            yield

    def first_done(self, value: Any) -> None:
        """Note what the first execution gave.

        Raises:
            SamebitsError: it changed what cannot be put back; `replay-step-optimizes`, `replay-side-effect`.
        """
        if self._digest_parameters() != self._weights:
            raise SamebitsError(
                "the step changed parameters: expected forward and backward only. Call `optimizer.step()` "
                "after the guarded step. (An embedding with `max_norm` changes its parameters in the forward "
                "pass: such a model cannot be guarded.)",
                slug="replay-step-optimizes",
            )
        self._before.plain.check()
        self._after = self._state(copied=False)
        self.result = self._read(value, self._after.generators)

    @property
    def weights(self) -> bytes:
        """Digests of the parameters, 16 bytes each."""
        return self._weights

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """The names of the parameters."""
        return tuple(name for name, _ in self._parameters)

    def again(
        self,
        run: Callable[[], Any],
        *,
        audited: bool = False,
        prepare: Callable[[CodeStates], None] | None = None,
    ) -> Result:
        """Execute the step once more as it began; what the step raises is part of the result.

        Args:
            run: the step.
            audited: look at what it writes to, in `foreign`.
            prepare: makes it the step of another rank, which begins without gradients.
        """
        before = self._before
        before.restore()
        torch.clear_autocast_cache()  # a copy of a weight that the first execution made is to be made again
        audit = self._audit() if audited else None
        try:
            with before.generators.again(), self._averaging.off(), self._collecting():
                if prepare is not None:
                    _clear(before.leaves)
                    prepare(before.generators)
                with contextlib.nullcontext() if audit is None else audit.watching():
                    value = run()
        except Exception as error:  # noqa: BLE001 - the step's own, or no memory
            pass_on(error)
            return Result((), b"", error=_one_line(error))
        finally:
            if audit is not None:
                self.foreign = tuple(audit.foreign)
        result = self._read(value, None)
        if result.key == self.result.key:
            return result
        return dataclasses.replace(result, generators=self._scope.generators.states().named())

    def as_begun(self, read: Callable[[CodeStates], _T]) -> _T:
        """Put back the state before the step, and return what is read of it.

        Args:
            read: gets the states of the generators before the step.
        """
        self._before.restore()
        return read(self._before.generators)

    def _audit(self) -> Audit:
        known = [tensor for _, leaf in self._leaves for tensor in (leaf, leaf.grad) if tensor is not None]
        known += [buffer for _, buffer in named_buffers(self._scope.modules)]
        return Audit([*known, *self._arguments, *self._before.plain.tensors])

    def finish(self) -> None:
        """Leave everything as the first execution left it."""
        torch.clear_autocast_cache()
        if self._after is not None:
            self._after.restore()
            self._after.generators.restore()

    def _state(self, *, copied: bool) -> _State:
        scope = self._scope
        known = {id(each) for _, each in self._leaves} | {id(each) for each in self._arguments}
        known |= {id(buffer) for _, buffer in named_buffers(scope.modules)}
        leaves = [leaf for _, leaf in self._leaves]
        fresh = copied and scope.incoming
        return _State(
            generators=scope.generators.states(search=copied),
            plain=PlainState(scope.function, scope.modules, known, scope.arguments),
            buffers=Buffers(scope.modules),
            arguments=Contents(self._arguments),
            gradients=None if fresh else Gradients(leaves, copied=copied),
            leaves=leaves,
        )

    @contextlib.contextmanager
    def _collecting(self) -> Iterator[None]:
        with contextlib.nullcontext() if self._incoming is None else self._incoming.collecting():
            yield

    def _read(self, value: Any, states: CodeStates | None) -> Result:
        named = list(flatten(value, "output"))
        if self._incoming is None:
            arrived = [(name, leaf.grad) for name, leaf in self._leaves if leaf.grad is not None]
        else:
            arrived = self._incoming.arrived()
        named += [(f"gradient {name}", gradient) for name, gradient in arrived]
        # Copies, because the next execution writes to the same buffers.
        named += [(f"buffer {name}", copy_of(buffer)) for name, buffer in named_buffers(self._scope.modules)]
        tensors = tuple(tensor for _, tensor in named)
        generators = {} if states is None else states.named()
        return Result(tuple(name for name, _ in named), digests_of(tensors), tensors, generators)

    def _digest_parameters(self) -> bytes:
        return digests_of([parameter for _, parameter in self._parameters])


@dataclass(frozen=True, slots=True)
class _State:
    """The state at one moment.

    Args:
        generators: their states.
        plain: Python values.
        buffers: of the modules.
        arguments: contents of tensors among the arguments.
        gradients: of the leaves; None to begin without any.
        leaves: the tensors that get gradients.
    """

    generators: CodeStates
    plain: PlainState
    buffers: Buffers
    arguments: Contents
    gradients: Gradients | None
    leaves: Sequence[torch.Tensor]

    def restore(self) -> None:
        """Put back all but the generators."""
        self.plain.restore()
        self.buffers.restore()
        self.arguments.restore()
        if self.gradients is not None:
            self.gradients.restore()
            return
        _clear(self.leaves)


def _clear(leaves: Sequence[torch.Tensor]) -> None:
    for leaf in leaves:
        leaf.grad = None


def digests_of(tensors: Sequence[torch.Tensor]) -> bytes:
    """Return 16 bytes for each tensor, zeros for one that cannot be read."""
    try:
        return digest_many(list(tensors))
    except SamebitsError:
        return b"".join(map(_digest_or_zeros, tensors))


def _digest_or_zeros(tensor: torch.Tensor) -> bytes:
    try:
        return digest_many([tensor])
    except SamebitsError:
        return bytes(16)


def _one_line(error: Exception) -> str:
    text = str(error).strip().partition("\n")[0]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
