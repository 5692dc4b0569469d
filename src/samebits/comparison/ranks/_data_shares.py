"""Checks how the ranks divided the data, by the indices that the loaders of each rank gave."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from samebits.comparison.ranks._rank_events import facts_of
from samebits.comparison.reasons import Reason, ReasonCode, SamplerConflict
from samebits.records.kinds import EventKind
from samebits.records.notes import Note, NoteCode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from samebits._runtime.frames import Site
    from samebits.comparison.lookup import Record
    from samebits.records.events import Event

_END, _UNKNOWN = "end", "?"
Loader = tuple[str, int, str, str]  # file, line, size of the dataset, sampler


@dataclass
class DataShares:
    """The division of the data among the ranks.

    Args:
        wrong: contradictions to the purpose of the sampler: (step, site, reason).
        notes: remarks for the user.
    """

    wrong: list[tuple[int, Site | None, Reason]] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)


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
            facts = number, missing, first.size, _conflict(shares)
            reason = Reason.of(ReasonCode.SAMPLES_MISSING, first.site, *facts)
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
