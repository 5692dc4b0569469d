"""Keyed samples for the loaders of a script: the parts that replace a loader's own in torch's iterators."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from samebits._torch.loaders import INDEX_SAMPLER, index_sampler
from samebits.dataloading._workers import WORKER, EpochId
from samebits.rng.samples import EpochKeys, SampleRng, as_in_worker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from samebits.dataloading._workers import LoaderEpoch

NO_NUMBERS = (
    "several workers read an iterable dataset, so the numbers of its elements depend on the workers, and the "
    "elements are keyed by worker. samebits.DataLoader reads datasets in shards "
    "(docs/reference/data.md)"
)
# Their indices occur once in an epoch over all ranks, except for DistributedSampler's padding.
_ONCE = ("SequentialSampler", "SubsetRandomSampler", "DistributedSampler")
_THREADS = 1  # as torch's workers have


@dataclass(frozen=True, slots=True)
class KeyedIndex:
    """The value that torch's iterator hands to the fetcher instead of an index, or a list of indices.

    Args:
        epoch: its epoch.
        position: its position in the epoch, from 0.
        index: the loader's own index, or list of indices.
        earlier: for each index the number of its earlier occurrences in the epoch; empty when none repeats.
    """

    epoch: EpochId
    position: int
    index: Any
    earlier: tuple[int, ...] = ()


class KeyedIndices:
    """The index sampler of a loader, with the epoch beside each index.

    Args:
        sampler: the loader's batch sampler, or its sampler.
        batched: it gives lists of indices.
        epoch: the epoch that begins.
    """

    samebits_indices = True  # recognised by `_loader_views`

    def __init__(self, sampler: Any, epoch: EpochId, *, batched: bool) -> None:
        self._sampler, self._epoch, self._batched = sampler, epoch, batched

    def __len__(self) -> int:
        return len(self._sampler)

    def __iter__(self) -> Iterator[KeyedIndex]:
        once, counts = _comes_once(self._sampler), Counter[Any]()
        for position, index in enumerate(self._sampler):
            earlier = (
                [] if once else [_count_earlier(counts, one) for one in (index if self._batched else [index])]
            )
            yield KeyedIndex(self._epoch, position, index, tuple(earlier) if any(earlier) else ())


def _comes_once(sampler: Any) -> bool:
    inner = getattr(sampler, "sampler", sampler)
    name = type(inner).__name__
    return name in _ONCE or (name == "RandomSampler" and not inner.replacement)


def _count_earlier(counts: Counter[Any], index: Any) -> int:
    number = _number_of(index)
    counts[number] += 1
    return counts[number] - 1


def _number_of(index: Any) -> int:
    """Return an index that is a whole number; for any other, 63 bits of a hash of its text."""
    try:
        return operator.index(index)
    except TypeError:
        digest = blake2b(repr(index).encode(), digest_size=8).digest()
        return int.from_bytes(digest, "little") >> 1


class KeyedSamples(list[Any]):
    """A batch of samples before it is collated, with its index."""

    keyed: KeyedIndex | None = None


class _Keyed:
    """The generators and keys of this process for one part of a loader; they are made when first used."""

    def __init__(self, roots: dict[str, Any]) -> None:
        self._roots = roots
        self._rng: SampleRng | None = None
        self._keys: EpochKeys | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_rng": None, "_keys": None}

    def ready(self, epoch: EpochId) -> tuple[SampleRng, EpochKeys, bool]:
        """Return the generators, the keys of the epoch, and whether the epoch begins here."""
        rng, keys = self._rng or SampleRng(self._roots), self._keys
        first = keys is None or (keys.seed, keys.epoch) != (epoch.seed, epoch.number)
        if keys is None or first:
            keys = self._keys = EpochKeys(epoch.seed, epoch.number)
            if self._rng is not None:
                rng.held.search(again=True)
        self._rng = rng
        rng.begin_batch()
        return rng, keys, first


class KeyedMap:
    """Replaces a map-style dataset: loads each sample under its key.

    Args:
        dataset: the script's.
        collate: the loader's, for the generators that it holds.
    """

    def __init__(self, dataset: Any, collate: Any) -> None:
        self.samebits_dataset = dataset
        self._keyed = _Keyed({"dataset": dataset, "collate_fn": collate})

    def __getitem__(self, keyed: Any) -> Any:
        """Load one sample."""
        if not isinstance(keyed, KeyedIndex):  # from another iterator, which has its own indices
            return self.samebits_dataset[keyed]
        samples = self._load(keyed, [keyed.index])
        single = UnbatchedSample(samples[0])
        single.keyed = keyed
        return single

    def __getitems__(self, keyed: Any) -> Any:
        """Load all samples of a batch; torch does that in one call if a dataset has this method."""
        if not isinstance(keyed, KeyedIndex):
            return [self.samebits_dataset[index] for index in keyed]
        samples = KeyedSamples(self._load(keyed, list(keyed.index)))
        samples.keyed = keyed
        return samples

    def _load(self, keyed: KeyedIndex, indices: list[Any]) -> list[Any]:
        rng, keys, first = self._keyed.ready(keyed.epoch)
        with as_in_worker(rng, _THREADS):
            samples = self._under_keys(keyed, indices, rng, keys)
            if rng.held.search(again=first):
                samples = self._under_keys(keyed, indices, rng, keys)  # as in data/fetching.py
        return samples

    def _under_keys(
        self, keyed: KeyedIndex, indices: list[Any], rng: SampleRng, keys: EpochKeys
    ) -> list[Any]:
        samples = []
        for number, index in enumerate(indices):
            earlier = keyed.earlier[number] if keyed.earlier else 0
            key = keys.sample(_number_of(index), earlier or None)
            rng.key(key, keys.epoch, _number_of(index), earlier)
            samples.append(self.samebits_dataset[index])
        return samples


class UnbatchedSample:
    """A sample that is not batched, with its index."""

    keyed: KeyedIndex | None = None

    def __init__(self, sample: Any) -> None:
        self.sample = sample


class KeyedCollate:
    """Replaces a loader's `collate_fn`: runs it under a key of the batch.

    Args:
        collate: the loader's own.
    """

    def __init__(self, collate: Callable[[Any], Any]) -> None:
        self._collate = collate
        self._keyed = _Keyed({"collate_fn": collate})

    def __call__(self, samples: Any) -> Any:
        """Make the batch."""
        keyed = getattr(samples, "keyed", None)
        if keyed is None:
            return self._collate(samples)
        plain = samples.sample if isinstance(samples, UnbatchedSample) else list(samples)
        if _draws_nothing(self._collate):
            return self._collate(plain)
        rng, keys, _ = self._keyed.ready(keyed.epoch)
        with as_in_worker(rng, _THREADS):
            rng.key(keys.batch(keyed.position), keys.epoch, "batch", keyed.position)
            return self._collate(plain)


def _draws_nothing(collate: Any) -> bool:
    """Tell whether it is one of torch's own functions, which draw nothing."""
    import torch

    return collate in (torch.utils.data.default_collate, torch.utils.data.default_convert)


class KeyedIterable(Iterable[Any]):
    """Replaces an iterable dataset: keys each element by its worker and number.

    Args:
        dataset: the script's.
        epoch: the epoch that begins; persistent workers are told of later ones.
    """

    def __init__(self, dataset: Any, epoch: EpochId) -> None:
        self.samebits_dataset, self._epoch = dataset, epoch
        self._keyed = _Keyed({"dataset": dataset})
        self.last: tuple[EpochId, int, int] | None = None

    def __iter__(self) -> Iterator[Any]:
        """Yield the elements."""
        epoch = WORKER.keyed_epoch or self._epoch
        rng, keys, _ = self._keyed.ready(epoch)
        worker = _worker_number()
        with as_in_worker(rng, _THREADS):
            rng.key(keys.element(worker), keys.epoch, "worker", worker)
            elements = iter(self.samebits_dataset)
        number = 0
        while True:
            with as_in_worker(rng, _THREADS):
                rng.begin_batch()
                rng.key(keys.element(worker, number), keys.epoch, "worker", worker, number)
                try:
                    element = next(elements)
                except StopIteration:
                    return
            self.last = (epoch, worker, number)
            yield element
            number += 1


class KeyedElements:
    """Replaces the `collate_fn` of a loader of an iterable dataset: runs it under a key of the last element.

    Args:
        collate: the loader's own.
        elements: the dataset whose elements it collates; the same object in every process.
    """

    def __init__(self, collate: Callable[[Any], Any], elements: KeyedIterable) -> None:
        self._collate, self._elements = collate, elements
        self._keyed = _Keyed({"collate_fn": collate})

    def __call__(self, samples: Any) -> Any:
        """Make the batch."""
        if self._elements.last is None:
            return self._collate(samples)
        epoch, worker, number = self._elements.last
        rng, keys, _ = self._keyed.ready(epoch)
        with as_in_worker(rng, _THREADS):
            rng.key(keys.element(worker, number, 0), keys.epoch, "batch", worker, number)
            return self._collate(samples)


def _worker_number() -> int:
    import torch

    info: Any = torch.utils.data.get_worker_info()
    return 0 if info is None or info.num_workers < 2 else int(info.id)


def keyed_parts(loader: Any, epoch: LoaderEpoch, *, iterable: bool) -> dict[str, Any]:
    """Return the parts that a view of a loader has instead of the loader's own.

    Args:
        loader: the script's.
        epoch: the epoch that begins.
        iterable: its dataset is iterable.
    """
    identity = EpochId(epoch.samples_seed, epoch.number)
    if iterable:
        elements = KeyedIterable(loader.dataset, identity)
        return {"dataset": elements, "collate_fn": KeyedElements(loader.collate_fn, elements)}
    batched = loader.batch_sampler is not None
    return {
        "dataset": KeyedMap(loader.dataset, loader.collate_fn),
        "collate_fn": KeyedCollate(loader.collate_fn),
        INDEX_SAMPLER: KeyedIndices(index_sampler(loader), identity, batched=batched),
    }
