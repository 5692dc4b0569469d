"""Ranks that should agree: replicas of parameters, and the data that each rank reads."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from samebits.comparison.ranks.facts import DataShares, RankStep, facts_of
from samebits.comparison.reasons import Reason, ReasonCode, SamplerConflict
from samebits.records.kinds import EventKind, Role
from samebits.records.notes import Note, NoteCode

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from samebits._runtime.frames import Site
    from samebits.comparison.lookup import Record
    from samebits.records.events import Event

_END, _UNKNOWN = "end", "?"
Loader = tuple[str, int, str, str]  # file, line, size of the dataset, sampler


@dataclass
class Epoch:
    """One iteration of a loader on one rank.

    Args:
        step: the step in which it began.
        site: the line that iterates.
        facts: the recorded facts about the loader.
        indices: the indices, in order.
        whole: whether it came to its end.
        known: whether all indices are known.
    """

    step: int
    site: Site | None
    facts: dict[str, Any]
    indices: list[str] = field(default_factory=list)
    whole: bool = False
    known: bool = True

    @property
    def distributed(self) -> bool:
        """True if the sampler divides the data among ranks."""
        return "sampler_num_replicas" in self.facts

    @property
    def size(self) -> int | None:
        """The size of the dataset."""
        size = self.facts.get("size")
        return size if isinstance(size, int) else None

    @property
    def drops(self) -> bool:
        """True if a tail may be left out."""
        return bool(self.facts.get("drop") or self.facts.get("sampler_drop_last"))

    def add(self, text: str) -> None:
        """Take in the text of an `indices` event after the colon."""
        if text == _END:
            self.whole = True
        elif text == _UNKNOWN:
            self.known = False
        else:
            self.indices += text.split(" ")


def data_shares(records: Mapping[int, Record]) -> DataShares:
    """Check how the ranks divided the data of the loaders that all of them iterate.

    Args:
        records: by rank.
    """
    result = DataShares()
    ranks = {rank: _epochs(record) for rank, record in records.items()}
    if len(ranks) < 2:
        return result
    for loader in next(iter(ranks.values())):
        if all(loader in epochs for epochs in ranks.values()):
            _check_loader({rank: epochs[loader] for rank, epochs in ranks.items()}, result)
    result.notes = list(dict.fromkeys(result.notes))
    return result


def _epochs(record: Record) -> dict[Loader, list[Epoch]]:
    """Return the iterations of each loader of a rank, by the line that iterates."""
    loaders: dict[Loader, list[Epoch]] = {}
    running: dict[str, Epoch] = {}
    for event in record.events((EventKind.COLLECTIVE,)):
        if event.op == "epoch":
            facts = facts_of(event)
            epoch = running[f"{facts.get('loader')} {facts.get('epoch')}"] = Epoch(
                event.step, event.site, facts
            )
            loaders.setdefault(_loader(event, facts), []).append(epoch)
        elif event.op == "indices":
            name, _, text = event.arguments.partition(": ")
            if name in running:
                running[name].add(text)
    return loaders


def _loader(event: Event, facts: dict[str, Any]) -> Loader:
    site = event.site
    file, line = ("", 0) if site is None else (site.file, site.line)
    return file, line, str(facts.get("size")), str(facts.get("sampler"))


def _check_loader(ranks: Mapping[int, list[Epoch]], result: DataShares) -> None:
    first = next(iter(ranks.values()))
    _note_seeds({rank: epochs[0] for rank, epochs in ranks.items()}, result)
    _note_repeated_order(first, result)
    already = len(result.wrong)
    for number in range(min(map(len, ranks.values()))):
        shares = {rank: epochs[number] for rank, epochs in ranks.items()}
        usable = all(share.known and share.indices for share in shares.values())
        if usable and len(result.wrong) == already:  # one epoch tells it all
            _check_epoch(number, shares, result)


def _check_epoch(number: int, shares: Mapping[int, Epoch], result: DataShares) -> None:
    first = next(iter(shares.values()))
    if first.facts.get("sampler_replacement") or "Weighted" in str(first.facts.get("sampler")):
        return
    counts: Counter[str] = Counter()
    for share in shares.values():
        counts.update(share.indices)
    repeated = sum(counts.values()) - len(counts)
    whole = all(share.whole for share in shares.values())
    sets = [frozenset(share.indices) for share in shares.values()]
    if not first.distributed and len(shares) > 1 and len(set(sets)) == 1:
        result.notes.append(Note.of(NoteCode.SAME_SAMPLES, first.site, len(sets[0])))
        return
    if repeated:
        _note_repeated_samples(number, repeated, shares, result)
    missing = 0 if first.size is None or not whole else first.size - len(counts)
    if missing > 0:
        if first.drops:
            result.notes.append(Note.of(NoteCode.SAMPLES_LEFT_OUT, first.site, missing, first.size))
        elif first.distributed:
            told = number, missing, first.size, _conflict(shares)
            reason = Reason.of(ReasonCode.SAMPLES_MISSING, first.site, *told)
            result.wrong.append((first.step, first.site, reason))
        else:
            note = Note.of(NoteCode.SAMPLES_ON_NO_RANK, first.site, number, missing, first.size)
            result.notes.append(note)


def _note_repeated_samples(
    epoch: int, repeated: int, shares: Mapping[int, Epoch], result: DataShares
) -> None:
    first, n = next(iter(shares.values())), len(shares)
    padding = 0 if first.size is None else -first.size % n
    conflict = _conflict(shares)
    if first.distributed and not conflict and 0 < repeated <= padding:
        result.notes.append(Note.of(NoteCode.SAMPLES_PADDED, first.site, repeated, first.size))
    elif first.distributed:
        reason = Reason.of(ReasonCode.SAMPLES_REPEATED, first.site, epoch, repeated, conflict)
        result.wrong.append((first.step, first.site, reason))
    else:
        result.notes.append(Note.of(NoteCode.SAMPLES_REPEATED, first.site, repeated))


def _conflict(shares: Mapping[int, Epoch]) -> SamplerConflict:
    """Return the settings of the samplers that must agree and do not."""
    settings = []
    for name in ("seed", "epoch", "num_replicas", "shuffle", "drop_last"):
        values = {rank: share.facts.get(f"sampler_{name}") for rank, share in shares.items()}
        if len(set(values.values())) > 1:
            settings.append((name, tuple(values.items())))
    numbers = [share.facts.get("sampler_rank") for share in shares.values()]
    same_rank = len(set(numbers)) < len(numbers) and None not in numbers
    return SamplerConflict(tuple(settings), same_rank)


def _note_repeated_order(epochs: list[Epoch], result: DataShares) -> None:
    """Note a DistributedSampler whose `set_epoch` is not called: it gives the same order each time."""
    for before, after in itertools.pairwise(epochs):
        n = min(len(before.indices), len(after.indices))
        if before.distributed and before.facts.get("sampler_shuffle") and n > 2:
            same = before.indices[:n] == after.indices[:n]
            if same and before.facts.get("sampler_epoch") == after.facts.get("sampler_epoch"):
                result.notes.append(Note.of(NoteCode.EPOCH_NOT_SET, before.site))
                return


def _note_seeds(shares: Mapping[int, Epoch], result: DataShares) -> None:
    """Note equal worker seeds: torch's do not depend on the rank, so ranks draw the same augmentations."""
    seeds: dict[Any, list[int]] = {}
    for rank, share in shares.items():
        facts = share.facts
        knows = facts.get("init") or facts.get("keyed")
        if facts.get("workers") and not knows and isinstance(facts.get("worker_seed"), int):
            seeds.setdefault(facts["worker_seed"], []).append(rank)
    for ranks in seeds.values():
        if len(ranks) > 1:
            result.notes.append(Note.of(NoteCode.SAME_WORKER_SEEDS, shares[ranks[0]].site, *ranks))


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
        sure: whether `DistributedDataParallel` must keep them equal.
    """

    equal: bool = True
    own: bool = False
    split: Split | None = None
    rejoined: int = 0
    sure: bool = False


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
        sure = self._parents.get(name, name) in self._groups
        tracked = self.tracked.setdefault(name, Tracked(own=not equal and not sure, sure=sure))
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
