"""What a substitution does around one op: its inputs, its generator, its outputs."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from samebits.recording.probes.tensor_files import put
from samebits.torch_private import is_virtual

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from contextlib import AbstractContextManager

    from samebits.recording.probes.substitution import Turn

    Arguments = tuple[tuple[Any, ...], dict[str, Any]]


class OpTurns:
    """What is done around one op.

    Args:
        turns: by each rule.
        op: executes the op.
        listed: the tensors that it returned or wrote to, from what it returned and its arguments.
        arguments: its positional and its keyword arguments.
        quietly: inside, ops are samebits' own.
    """

    def __init__(
        self,
        turns: list[Turn],
        op: Callable[..., Any],
        listed: Callable[[Any, Any, Any], list[Any]],
        arguments: Arguments,
        quietly: AbstractContextManager[None],
    ) -> None:
        self._quietly = quietly
        self._turns = turns
        self._op = op
        self._listed = listed
        self._arguments = arguments
        self._n_inputs = 0
        self._generator: Any = None
        self._own: dict[int, tuple[Arguments, Any]] = {}

    def before(self, inputs: list[Any], generator: Any) -> None:
        """Before the op, and before anything of it is digested.

        Args:
            inputs: its tensors.
            generator: that it draws from, if it does.
        """
        self._n_inputs, self._generator = len(inputs), generator
        with self._quietly:
            for turn in self._turns:
                if turn.rule.part == "in":
                    self._give_inputs(turn, inputs)
                elif turn.rule.part == "state" and generator is not None:
                    self._give_state(turn, generator)
                elif turn.rule.part == "draw" and turn.owner.seeded_from is not None and turn.measures:
                    self._own[turn.rule_number] = (self._copies({}), turn.owner.seeded_from)

    def after(self, outcome: Any, first: int) -> Any:
        """After the op, and before anything of it is digested.

        Args:
            outcome: what it returned.
            first: position of its first output in the event.

        Returns:
            what it is to return.
        """
        if any(is_virtual(tensor) for tensor in self._listed(outcome, *self._arguments)):
            return outcome
        with self._quietly:
            for turn in self._turns:
                outputs = dict(enumerate(self._listed(outcome, *self._arguments), first))
                if turn.rule.part == "out":
                    outcome = self._put(outcome, outputs, turn.exchange(outputs))
                elif turn.keeps and (turn.rule.part != "draw" or turn.owner.seeded):
                    turn.show(outputs)
                elif turn.rule_number in self._own:
                    turn.show(dict(enumerate(self._own_outputs(*self._own[turn.rule_number]), first)))
        return outcome

    def recorded(self, seq: int) -> None:
        """The event has a number."""
        if self._turns:
            self._turns[0].owner.recorded(seq, self._turns)

    def _give_inputs(self, turn: Turn, inputs: list[Any]) -> None:
        chosen = {i: inputs[i] for i in turn.rule.positions if i < len(inputs)}
        wanted = turn.exchange(chosen, show=False)
        if wanted and turn.measures:
            self._own[turn.rule_number] = (self._copies(chosen), None)
        for position, contents in wanted.items():
            put(chosen[position], contents)

    def _give_state(self, turn: Turn, generator: Any) -> None:
        own = generator.get_state()
        for contents in turn.exchange({self._n_inputs: own}, show=False).values():
            if turn.measures:
                self._own[turn.rule_number] = (self._copies({}), own)
            generator.set_state(contents)

    def _copies(self, replaced: dict[int, Any]) -> Arguments:
        """The op's arguments with copies of their tensors: what it writes to is then not the script's."""
        found: Arguments = copied(self._arguments, itertools.count(), replaced)
        return found

    def _own_outputs(self, copies: Arguments, state: Any) -> list[Any]:
        """What the op would have given without what was put in place."""
        args, kwargs = copies
        if state is None or self._generator is None:
            return self._listed(self._op(*args, **kwargs), args, kwargs)
        after = self._generator.get_state()
        self._generator.set_state(state)
        try:
            return self._listed(self._op(*args, **kwargs), args, kwargs)
        finally:
            self._generator.set_state(after)

    def _put(self, outcome: Any, outputs: Mapping[int, Any], wanted: Mapping[int, Any]) -> Any:
        """Put contents in place of outputs; give what the op is to return."""
        if not wanted:
            return outcome
        given = list(tensors_of(self._arguments))
        bases = {_storage(tensor) for tensor in given}
        fresh: dict[int, Any] = {}
        for position, contents in wanted.items():
            tensor = target = outputs[position]
            if _storage(tensor) in bases and not any(tensor is argument for argument in given):
                # A view of an argument, such as another slice: writing there would change the argument.
                target = fresh[id(tensor)] = tensor.clone()
            put(target, contents)
        return renewed(outcome, fresh) if fresh else outcome


def tensors_of(value: Any) -> Iterator[Any]:
    """The tensors in nested arguments."""
    if hasattr(type(value), "untyped_storage"):
        yield value
    elif type(value) in (list, tuple, dict):
        for item in value.values() if type(value) is dict else value:
            yield from tensors_of(item)


def copied(value: Any, numbers: Iterator[int], replaced: Mapping[int, Any]) -> Any:
    """Nested arguments with each tensor copied.

    Args:
        value: the arguments.
        numbers: counts the tensors, in order.
        replaced: what is copied in place of some.
    """
    if hasattr(type(value), "untyped_storage"):
        return replaced.get(next(numbers), value).clone()
    if type(value) is dict:
        return {key: copied(item, numbers, replaced) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)([copied(item, numbers, replaced) for item in value])
    return value


def renewed(value: Any, fresh: Mapping[int, Any]) -> Any:
    """What an op returned, with some tensors replaced, by identity."""
    if type(value) in (list, tuple):
        return type(value)([renewed(item, fresh) for item in value])
    return fresh.get(id(value), value)


def _storage(tensor: Any) -> int:
    """Where the memory of a tensor begins; 0 without one."""
    try:
        return int(tensor.untyped_storage().data_ptr())
    except (NotImplementedError, RuntimeError):  # sparse
        return 0
