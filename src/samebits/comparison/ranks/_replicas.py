"""Replicas of parameters, which should be equal on all ranks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from samebits.comparison.ranks._rank_events import facts_of
from samebits.records.kinds import Role

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from samebits.comparison.ranks._rank_events import RankStep
    from samebits.records.events import Event

Values = dict[str, tuple[tuple[int, ...], bytes]]  # shape and digest by name


@dataclass(frozen=True)
class Split:
    """The step at which the replicas of one tensor ceased to be equal.

    Args:
        name: name of the tensor.
        step: number of the step at whose end they differed.
        before: whether they differed before that step already.
        groups: the ranks that have the same bits, the largest group first.
        events: the `step` or `replicas` event of each rank.
        gradients: whether their gradients in that step were equal; None if there are none.
    """

    name: str
    step: int
    before: bool
    groups: tuple[tuple[int, ...], ...]
    events: Mapping[int, Event]
    gradients: bool | None


@dataclass
class Tracked:
    """The state of the replicas of one tensor, so far.

    Args:
        equal: whether they are equal now.
        own: whether they were never equal: each rank has its own.
        split: the last split.
        rejoined: how often they were equal again after a split.
    """

    equal: bool = True
    own: bool = False
    split: Split | None = None
    rejoined: int = 0


@dataclass
class ReplicaWalk:
    """Follows the replicas from step to step.

    Args:
        tracked: by name, in the order of the records.
        shards: names of parameters that the ranks hold in parts.
        steps: how many steps were compared.
    """

    tracked: dict[str, Tracked] = field(default_factory=dict)
    shards: dict[str, None] = field(default_factory=dict)
    steps: int = 0
    _groups: dict[str, frozenset[int]] = field(default_factory=dict)
    _parents: dict[str, str] = field(default_factory=dict)

    def add(self, steps: Mapping[int, RankStep]) -> None:
        """Compare one step of all ranks."""
        announced = {rank: step.replicas[-1] for rank, step in steps.items() if step.replicas}
        for event in announced.values():
            self._learn(event)
        if len(announced) == len(steps):
            self._compare(steps, announced, before=True)
        states = {rank: step.state for rank, step in steps.items() if step.state is not None}
        if len(states) == len(steps):
            self.steps += 1
            self._compare(steps, states, before=False)

    def splits(self) -> list[Split]:
        """Return the splits that lasted, the earliest first."""
        splits = [
            t.split for t in self.tracked.values() if t.split is not None and not t.equal and not t.rejoined
        ]
        return sorted(splits, key=lambda split: (split.step, not split.before))

    def averaged(self) -> list[str]:
        """Return the names of tensors that diverged and were equal again."""
        return [name for name, tracked in self.tracked.items() if tracked.rejoined]

    def compared(self) -> list[str]:
        """Return the names of parameters that were compared as replicas."""
        return [n for n, tracked in self.tracked.items() if not tracked.own and n not in self._parents]

    def own(self) -> list[str]:
        """Return the names of parameters of which each rank has its own."""
        return [n for n, tracked in self.tracked.items() if tracked.own and n not in self._parents]

    def _learn(self, event: Event) -> None:
        facts = facts_of(event)
        self.shards.update(
            dict.fromkeys(name for name in _list(facts.get("shards")) if isinstance(name, str))
        )
        for group in _list(facts.get("groups")):
            fields = group if isinstance(group, dict) else {}
            ranks = frozenset(rank for rank in _list(fields.get("ranks")) if isinstance(rank, int))
            for name in _list(fields.get("names")):
                self._groups[str(name)] = ranks

    def _compare(self, steps: Mapping[int, RankStep], events: Mapping[int, Event], *, before: bool) -> None:
        values = {rank: self._values(event) for rank, event in events.items()}
        for name in dict.fromkeys(name for held in values.values() for name in held):
            parent = self._parents.get(name, name)
            if parent in self.shards or (parent != name and self._is_own(parent)):
                continue
            members = self._groups.get(parent)
            replicas = {
                rank: held[name]
                for rank, held in values.items()
                if name in held and (members is None or rank in members)
            }
            if len(replicas) > 1:
                self._note(name, replicas, steps, events, before=before)

    def _note(
        self,
        name: str,
        replicas: Mapping[int, tuple[tuple[int, ...], bytes]],
        steps: Mapping[int, RankStep],
        events: Mapping[int, Event],
        *,
        before: bool,
    ) -> None:
        equal, new = len(set(replicas.values())) == 1, name not in self.tracked
        is_replica = self._parents.get(name, name) in self._groups  # `DistributedDataParallel` keeps it equal
        tracked = self.tracked.setdefault(name, Tracked(own=not equal and not is_replica))
        if tracked.own:
            return
        if equal and not tracked.equal:
            tracked.rejoined += 1
        if not equal and (tracked.equal or new):
            number = next(iter(events.values())).step
            tracked.split = Split(
                name, number, before, _groups_of(replicas), events, _gradients(name, replicas, steps)
            )
        tracked.equal = equal

    def _is_own(self, name: str) -> bool:
        tracked = self.tracked.get(name)
        return tracked is None or tracked.own

    def _values(self, event: Event) -> Values:
        """Return shape and digest of the parameters and of their optimizer state."""
        values: Values = {}
        parameters = [info.name for info in event.tensors if info.role == Role.PARAM]
        for info, digest in zip(event.tensors, event.digests, strict=True):
            if info.role == Role.OPTIMIZER and info.name not in self._parents:
                self._parents[info.name] = _owner(info.name, parameters)
            if info.role in (Role.PARAM, Role.OPTIMIZER):
                values[info.name] = (info.shape, digest)
        return values


def _owner(name: str, parameters: Iterable[str]) -> str:
    """Return the parameter that an entry of an optimizer's state belongs to."""
    return max((p for p in parameters if name.startswith(f"{p}.")), key=len, default="")


def _groups_of(replicas: Mapping[int, object]) -> tuple[tuple[int, ...], ...]:
    groups: dict[object, list[int]] = {}
    for rank, value in sorted(replicas.items()):
        groups.setdefault(value, []).append(rank)
    return tuple(sorted((tuple(ranks) for ranks in groups.values()), key=lambda ranks: (-len(ranks), ranks)))


def _gradients(name: str, ranks: Iterable[int], steps: Mapping[int, RankStep]) -> bool | None:
    digests = [steps[rank].gradients.get(name) for rank in ranks]
    return None if None in digests else len(set(digests)) == 1


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []
