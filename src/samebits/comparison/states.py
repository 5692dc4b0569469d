"""Compares the state of two runs at one step boundary."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import groupby, zip_longest
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar

from samebits.recording.state_equality import Match, Name, Value, match, plain
from samebits.records.events import Ownership
from samebits.records.kinds import EventKind, Role

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from samebits.comparison.steps import Step
    from samebits.records.events import Event, TensorInfo

_T = TypeVar("_T")


@dataclass(frozen=True)
class EventTensor:
    """A tensor of an event."""

    event: Event
    position: int

    @property
    def digest(self) -> bytes:
        """The digest of its contents."""
        return self.event.digests[self.position]

    @property
    def info(self) -> TensorInfo:
        """The facts that the record holds about it."""
        return self.event.tensors[self.position]

    @property
    def value(self) -> Value:
        """The part of it that is compared."""
        return Value(self.digest, self.info.dtype, self.info.shape)

    @property
    def is_owned(self) -> bool:
        """True if it belongs to the optimizer whose step the event shows."""
        if self.event.kind != EventKind.STEP or not str(self.event.op).endswith(".step"):
            return False
        positions = Ownership.from_text(self.event.arguments).positions
        return self.info.role == Role.OPTIMIZER or positions is None or self.position in positions


Named = dict[Name, EventTensor]


@dataclass(frozen=True)
class TensorPair:
    """A state tensor that is not the same in both runs.

    Args:
        role: `param`, `buffer`, `grad` or `optimizer`.
        name: its name.
        a: the tensor in the first run; None when that run does not have it.
        b: the tensor in the second run.
    """

    role: Role
    name: str
    a: EventTensor | None
    b: EventTensor | None

    @property
    def only_in(self) -> Literal["first", "second", ""]:
        """The only run that has the tensor; empty where both have it."""
        return "first" if self.b is None else "second" if self.a is None else ""

    @property
    def info(self) -> TensorInfo | None:
        """The facts about the tensor, from the first run that has it."""
        shown = self.a or self.b
        return shown.info if shown else None


@dataclass
class StateDifference:
    """The differences between the states of two runs at one boundary.

    Args:
        pairs: tensors that differ, in the order of the record.
        compared: whether there was anything to compare.
        moved: how many tensors have the same values under another name.
        lone: how many tensors only one run holds that no optimizer steps, or that did not change. When a
            model is freed is chance.
    """

    pairs: list[TensorPair] = field(default_factory=list)
    compared: bool = False
    moved: int = 0
    lone: int = 0


def compare_states(
    a: Step, b: Step, excluded: Collection[str], before: tuple[Step, Step] | None = None
) -> StateDifference:
    """Compare the last gradient of each name, then the state events of two steps.

    Args:
        a: a step of the first run.
        b: the same step of the second.
        excluded: names of state tensors that are left out.
        before: the steps before these, if those were compared too.
    """
    difference = StateDifference()
    known = [([], []), ([], [])] if before is None else [(_gradients(s), _last_states(s)) for s in before]
    gradients, states = zip(*known, strict=True)
    _compare_events((_gradients(a), _gradients(b)), gradients, excluded, difference)
    difference.lone = 0  # a gradient lives and dies with its model
    for pair in zip_longest(_by_number(a.states), _by_number(b.states), fillvalue=()):
        _compare_events(pair, states, excluded, difference)
        states = pair
    for ended in zip(a.ends, b.ends, strict=False):
        # What only one run still holds when its script ends depends on when memory was freed.
        ours, theirs = _shared(*(_named([event]) for event in ended))
        _compare((ours, theirs), (_named(states[0]), _named(states[1])), excluded, difference)
    return difference


def final_state(a: Step, b: Step, excluded: Collection[str]) -> tuple[bytes, bytes]:
    """Return the names and digests of the last state in each of two steps: all that one digest has to cover.

    The part of a name that is chance is left out. What only one run still holds is covered in the first run.
    """
    ours, theirs = (_named(_last_states(step)) for step in (a, b))
    if a.ends and b.ends:
        ours, theirs = _shared(ours, theirs)
    matched = _match((ours, theirs), ({}, {}), excluded)
    packed = _packed(ours, excluded)
    same = not matched.differing and {*matched.only_first, *matched.only_second} <= set(
        _lone(matched, ours, theirs)
    )
    return packed, packed if same else _packed(theirs, excluded)


def held_states(step: Step) -> list[Event]:
    """List the state events of a step that hold something: a model made in a function is gone at the end."""
    return [event for event in (*step.states, *step.ends) if event.tensors]


def _gradients(step: Step) -> list[Event]:
    # `torch.autograd.grad` gives values of its own, which are no state until something uses them.
    return [event for event in step.grads if event.op != "grad"]


def _by_number(states: Sequence[Event]) -> list[tuple[Event, ...]]:
    """Group state events by step: several optimizers may follow one backward pass."""
    return [tuple(group) for _, group in groupby(states, key=lambda event: event.step)]


def _last_states(step: Step) -> list[Event]:
    held = held_states(step)
    last = held[-1:] if step.ends and held and held[-1] in step.ends else held
    return [event for event in last if event.step == last[-1].step]


def _named(events: Sequence[Event]) -> Named:
    """Return the tensors of some events by name, the last of each name.

    Where several optimizers step in one step, the last state has what the model holds in the end.
    """
    tensors = ((event, i, t) for event in events for i, t in enumerate(event.tensors))
    return {
        (t.role, t.name): EventTensor(event, i)
        for event, i, t in tensors
        if t.role in (Role.OPTIMIZER, Role.GRAD) or event is events[-1]
    }


def _shared(a: Named, b: Named) -> tuple[Named, Named]:
    return {k: v for k, v in a.items() if k in b}, {k: v for k, v in b.items() if k in a}


Pair: TypeAlias = "tuple[_T, _T]"


def _compare_events(
    pair: Pair[Sequence[Event]],
    before: Pair[Sequence[Event]],
    excluded: Collection[str],
    difference: StateDifference,
) -> None:
    a, b = pair
    difference.compared |= bool(a or b)
    if [event.digests for event in a] == [event.digests for event in b] and [
        event.tensors for event in a
    ] == [event.tensors for event in b]:
        return
    _compare((_named(a), _named(b)), (_named(before[0]), _named(before[1])), excluded, difference)


def _compare(
    pair: Pair[Named], before: Pair[Named], excluded: Collection[str], difference: StateDifference
) -> None:
    a, b = pair
    difference.compared |= bool(a or b)
    matched = _match(pair, before, excluded)
    lone = _lone(matched, a, b)
    pairs = [TensorPair(*ours, a[ours], b[theirs]) for ours, theirs in matched.differing]
    pairs += [TensorPair(*name, a[name], None) for name in matched.only_first if name not in lone]
    pairs += [TensorPair(*name, None, b[name]) for name in matched.only_second if name not in lone]
    order = {name: position for position, name in enumerate([*a, *(name for name in b if name not in a)])}
    difference.pairs += sorted(pairs, key=lambda pair: order[pair.role, pair.name])
    difference.moved += matched.moved
    difference.lone += len(lone) + matched.unchanged


def _match(pair: Pair[Named], before: Pair[Named], excluded: Collection[str]) -> Match:
    a, b, *earlier = (
        {name: tensor.value for name, tensor in named.items() if name[1] not in excluded}
        for named in (*pair, *before)
    )
    return match(a, b, (earlier[0], earlier[1]))


def _lone(matched: Match, a: Named, b: Named) -> list[Name]:
    """List what only one run holds and no optimizer steps, where the other run holds something at all."""
    if not (a and b):
        return []
    firsts = [name for name in matched.only_first if not a[name].is_owned]
    return firsts + [name for name in matched.only_second if not b[name].is_owned]


def _packed(tensors: Named, left_out: Collection[str]) -> bytes:
    rows = sorted(
        (role, plain(name), tensor.digest) for (role, name), tensor in tensors.items() if name not in left_out
    )
    return b"".join(f"{role} {name}\n".encode() + digest for role, name, digest in rows)
