"""Compares the state of two runs at one step boundary."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import zip_longest
from typing import TYPE_CHECKING

from samebits.comparison.results import describe

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from samebits.comparison.steps import Step
    from samebits.recording.events import Event

_KINDS = {"param": "parameter", "grad": "gradient", "optimizer": "optimizer state"}


@dataclass(frozen=True)
class Place:
    """A tensor of an event."""

    event: Event
    position: int

    @property
    def digest(self) -> bytes:
        """The digest of the tensor."""
        return self.event.digests[self.position]


Named = dict[tuple[str, str], Place]  # by role and name


@dataclass(frozen=True)
class TensorPair:
    """A state tensor that is not the same in both runs.

    Args:
        role: `param`, `buffer`, `grad` or `optimizer`.
        name: its name.
        a: where the first run shows it; None when that run does not have it.
        b: the same of the second run.
    """

    role: str
    name: str
    a: Place | None
    b: Place | None

    def text(self) -> str:
        """The tensor in words, such as `parameter fc1.weight (f32[10])`."""
        kind = _KINDS.get(self.role, self.role)
        shown = self.a or self.b
        return f"{kind} {self.name}" + (
            f" ({describe(shown.event.tensors[shown.position])})" if shown else ""
        )


@dataclass
class StateDifference:
    """How the states of two runs differ at one boundary.

    Args:
        pairs: tensors that differ, in the order of the record.
        compared: whether there was anything to compare.
    """

    pairs: list[TensorPair] = field(default_factory=list)
    compared: bool = False


def compare_states(a: Step, b: Step, excused: Collection[str]) -> StateDifference:
    """Compare the last gradient of each name, then the state events of two steps."""
    found = StateDifference()
    _compare_events(_gradients(a), _gradients(b), excused, found)
    for first, second in zip_longest(a.states, b.states):
        _compare_events(_listed(first), _listed(second), excused, found)
    for first, second in zip(a.ends, b.ends, strict=False):
        # What only one run still holds when its script ends is a matter of when memory was freed.
        ours, theirs = _shared(_named([first]), _named([second]))
        _compare(ours, theirs, excused, found)
    return found


def final_state(a: Step, b: Step, excused: Collection[str]) -> tuple[bytes, bytes]:
    """Names and digests of the last state in each of two steps: all that one digest has to cover."""
    ours, theirs = (_named(held_states(step)[-1:]) for step in (a, b))
    if a.ends and b.ends:
        ours, theirs = _shared(ours, theirs)
    return _packed(ours, excused), _packed(theirs, excused)


def held_states(step: Step) -> list[Event]:
    """The state events of a step that hold something: a model made in a function is gone at the end."""
    return [event for event in (*step.states, *step.ends) if event.tensors]


def _gradients(step: Step) -> list[Event]:
    # `torch.autograd.grad` gives values of its own, which are no state until something uses them.
    return [event for event in step.grads if event.op != "grad"]


def _listed(event: Event | None) -> list[Event]:
    return [] if event is None else [event]


def _named(events: Iterable[Event]) -> Named:
    """The tensors of some events by name, the last of each name."""
    return {(t.role, t.name): Place(event, i) for event in events for i, t in enumerate(event.tensors)}


def _shared(a: Named, b: Named) -> tuple[Named, Named]:
    return {k: v for k, v in a.items() if k in b}, {k: v for k, v in b.items() if k in a}


def _compare_events(a: list[Event], b: list[Event], excused: Collection[str], found: StateDifference) -> None:
    found.compared |= bool(a or b)
    if [event.digests for event in a] == [event.digests for event in b] and [
        event.tensors for event in a
    ] == [event.tensors for event in b]:
        return
    _compare(_named(a), _named(b), excused, found)


def _compare(a: Named, b: Named, excused: Collection[str], found: StateDifference) -> None:
    found.compared |= bool(a or b)
    for key in [*a, *(key for key in b if key not in a)]:
        ours, theirs = a.get(key), b.get(key)
        if key[1] in excused or (ours and theirs and ours.digest == theirs.digest):
            continue
        found.pairs.append(TensorPair(*key, ours, theirs))


def _packed(tensors: Named, excused: Collection[str]) -> bytes:
    kept = sorted((key, place.digest) for key, place in tensors.items() if key[1] not in excused)
    return b"".join(f"{role} {name}\n".encode() + digest for (role, name), digest in kept)
