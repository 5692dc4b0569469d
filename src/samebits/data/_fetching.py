"""Loads the samples of each batch in the workers of torch's loader, each sample with its own key."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch.utils import data as torch_data
from torch.utils.data import default_collate, default_convert, get_worker_info

from samebits.data._shards import Sharded, ShardOrder, SingleShard, StreamReader
from samebits.rng.samples import EpochKeys, SampleRng, as_in_worker
from samebits.rng.seeds import derive

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from samebits.data.loader import Position
    from samebits.data.permutation import Partition
    from samebits.data.samplers import Sampler

_DRAW_NOTHING = (default_collate, default_convert)


@dataclass(frozen=True, slots=True)
class BatchTask:
    """The message that asks a worker for one batch.

    Args:
        epoch: from 0; it travels with the indices, so persistent workers cannot have another one.
        start: the position of the first sample in the global order.
        stop: the position after the last.
        indices: of the samples of a map-style dataset.
        pass_number: counts the passes over the loader; a process forgets all of an earlier one.
    """

    epoch: int
    start: int
    stop: int
    indices: tuple[int, ...] = ()
    pass_number: int = 0


@dataclass(frozen=True, slots=True)
class FetchPlan:
    """The settings by which batches are made of samples.

    Args:
        seed: of the loader.
        repeats: whether an index may come twice in an epoch, so that its position is part of its key.
        batched: False hands over single samples.
        collate: makes a batch of a list of samples, or converts a single one.
        threads: how many torch has while samples are loaded.
    """

    seed: int
    repeats: bool
    batched: bool
    collate: Callable[[Any], Any]
    threads: int


class Fetcher(ABC):
    """Replaces the dataset in torch's own loader, where an index is a whole `BatchTask`.

    Args:
        dataset: the user's.
        plan: how batches are made.
    """

    samebits_keyed = True  # control leaves it alone

    def __init__(self, dataset: Any, plan: FetchPlan) -> None:
        self.dataset, self.plan = dataset, plan
        self._rng: SampleRng | None = None
        self._keys: EpochKeys | None = None
        self._pass_number = -1

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_rng": None, "_keys": None}

    def __getitem__(self, task: BatchTask) -> LoadedBatch:
        rng = self._rng or SampleRng({"dataset": self.dataset, "collate_fn": self.plan.collate})
        first = self._keys is None or self._pass_number != task.pass_number
        if self._keys is None or first:
            self._keys, self._pass_number = EpochKeys(self.plan.seed, task.epoch), task.pass_number
            if self._rng is not None:
                rng.held.search(again=True)
        self._rng = rng
        rng.begin_batch()
        with as_in_worker(rng, self.plan.threads):
            try:
                return LoadedBatch(self.load(task, rng, self._keys, first=first), task.start)
            except StopIteration as error:  # torch would end the epoch here and drop the rest
                raise RuntimeError("the dataset or collate_fn raised StopIteration") from error

    @abstractmethod
    def load(self, task: BatchTask, rng: SampleRng, keys: EpochKeys, *, first: bool) -> Any:
        """Make the batch.

        Args:
            task: which one.
            rng: sets the generators.
            keys: of the epoch.
            first: whether this is the first batch of the pass in this process.
        """

    def collate(self, samples: list[Any], task: BatchTask, rng: SampleRng, keys: EpochKeys) -> Any:
        """Make a batch of samples, under a key of its own."""
        if self.plan.collate not in _DRAW_NOTHING:
            rng.key(keys.batch(task.start), task.epoch, "batch", task.start)
        return self.plan.collate(samples if self.plan.batched else samples[0])


class KeyedDataset(Fetcher):
    """Loads samples of a map-style dataset."""

    def load(self, task: BatchTask, rng: SampleRng, keys: EpochKeys, *, first: bool) -> Any:
        """Load the samples by their indices."""
        batch = self._load(task, rng, keys)
        if rng.held.search(again=first):
            # The dataset made a generator and keeps it. Draws made before it had a key are made anew.
            batch = self._load(task, rng, keys)
        return batch

    def _load(self, task: BatchTask, rng: SampleRng, keys: EpochKeys) -> Any:
        dataset, repeats, epoch = self.dataset, self.plan.repeats, task.epoch
        samples = []
        for position, index in enumerate(task.indices, task.start):
            if repeats:
                rng.key(keys.sample(index, position), epoch, index, position)
            else:
                rng.key(keys.sample(index), epoch, index)
            samples.append(dataset[index])
        return self.collate(samples, task, rng, keys)


class LoadedBatch(NamedTuple):
    """A batch as a worker returns it; a tuple, so that torch pins the memory of its parts.

    Args:
        batch: the loaded samples.
        start: the position of its first sample: after one that failed, the next is not one batch further on.
    """

    batch: Any
    start: int


class ShardBatch(NamedTuple):
    """A batch of an iterable dataset; a tuple, so that torch pins the memory of its parts.

    Args:
        batch: the user's.
        elements: how many are in it; a batch without any is not handed over.
        ended: the streams that it would have read from and that have ended.
    """

    batch: Any
    elements: int
    ended: tuple[int, ...]


class KeyedShards(Fetcher):
    """Reads elements of an iterable dataset, each under a key of its shard and its number there.

    Args:
        dataset: the user's.
        plan: how batches are made.
        order: the order of the elements.
        global_batch: samples of all ranks together.
    """

    def __init__(self, dataset: Any, plan: FetchPlan, order: ShardOrder, global_batch: int) -> None:
        super().__init__(dataset, plan)
        self._order, self._global_batch = order, global_batch
        self._streams: dict[int, StreamReader] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_streams": {}}

    def load(self, task: BatchTask, rng: SampleRng, keys: EpochKeys, *, first: bool) -> Any:
        """Read the pieces of a batch."""
        if first:
            self._streams.clear()
        batch = self._load(task, rng, keys)
        if rng.held.search(again=first):
            # As for map-style datasets: everything that this process has read so far is read anew.
            self._streams.clear()
            batch = self._load(task, rng, keys)
        return batch

    def _load(self, task: BatchTask, rng: SampleRng, keys: EpochKeys) -> Any:
        elements, ended = [], []
        for stream, low, high in self._order.streams.pieces(task.start, task.stop, self._global_batch):
            if stream not in self._streams:
                self._streams[stream] = self._reader(stream, rng, keys)
            elements += self._streams[stream].take(low, high)
            if self._streams[stream].ended:
                ended.append(stream)
        batch = self.collate(elements, task, rng, keys) if elements else None
        return ShardBatch(batch, len(elements), tuple(ended))

    def _reader(self, stream: int, rng: SampleRng, keys: EpochKeys) -> StreamReader:
        shards = self.dataset if isinstance(self.dataset, Sharded) else SingleShard(self.dataset)

        def produce(iterator: Any, shard: int, number: int) -> Any:
            rng.key(keys.element(shard, number), keys.epoch, "shard", shard, number)
            return next(iterator)

        def begin(shard: int) -> Any:
            rng.key(keys.element(shard), keys.epoch, "shard", shard)
            return iter(shards.iter_shard(shard))

        return StreamReader(self._order, stream, self.plan.seed, keys.epoch, produce, begin)


@dataclass(frozen=True)
class WorkerStart:
    """Prepares a worker: puts the user's dataset in its place, sets threads, calls the user's function.

    Args:
        threads: of torch in the worker; torch itself sets 1.
        user: the loader's `worker_init_fn`.
    """

    threads: int
    user: Callable[[int], Any] | None

    def __call__(self, worker: int) -> None:
        """Prepare the worker; torch calls this there."""
        torch.set_num_threads(self.threads)
        info: Any = get_worker_info()
        if isinstance(info.dataset, Fetcher):
            # torch made it read-only, but `worker_init_fn` expects the user's dataset there.
            object.__setattr__(info, "dataset", info.dataset.dataset)
        if self.user is not None:
            self.user(worker)


class Tasks:
    """The batches of one pass, as torch's loader asks its sampler for them.

    Args:
        sampler: the order of a map-style dataset, or that of shards.
        seed: of the loader.
        partition: of the order into batches.
    """

    def __init__(self, sampler: Sampler | ShardOrder, seed: int, partition: Partition) -> None:
        self._sampler, self._seed, self._partition = sampler, seed, partition
        self._pass_number = 0
        self.begin: Position | None = None

    def __len__(self) -> int:
        return len(self._partition.batches_from(0))

    def __iter__(self) -> Iterator[BatchTask]:
        # Not a generator: that would read `begin` at its first `next`, and it may have moved on by then.
        assert self.begin is not None  # noqa: S101 - the loader sets it before each pass
        self._pass_number += 1
        return self._from(self.begin.epoch, self.begin.position, self._pass_number)

    def _from(self, epoch: int, position: int, pass_number: int) -> Iterator[BatchTask]:
        for batch in self._partition.batches_from(position):
            start, stop = self._partition.part(batch)
            yield BatchTask(epoch, start, stop, self._indices(epoch, start, stop), pass_number)

    def _indices(self, epoch: int, start: int, stop: int) -> tuple[int, ...]:
        sampler = self._sampler
        if isinstance(sampler, ShardOrder):
            return ()
        size, indices = len(sampler), list[int]()
        while len(indices) < stop - start:  # tail="pad" goes on from the beginning of the order
            first = (start + len(indices)) % size
            last = min(size, first + stop - start - len(indices))
            indices += sampler.indices(epoch, first, last, seed=self._seed).tolist()
        return tuple(indices)


class TorchLoader:
    """Torch's loader over batches; nothing in it draws from a global generator.

    Args:
        loader: the user's, for its options.
        tasks: torch's loader takes the next batch from these.
        fetcher: loads the batches.
    """

    def __init__(self, loader: torch_data.DataLoader[Any], tasks: Tasks, fetcher: Fetcher) -> None:
        self._tasks = tasks
        plan: FetchPlan = fetcher.plan
        more: dict[str, Any] = {} if loader.num_workers == 0 else {"prefetch_factor": loader.prefetch_factor}
        self._loader: torch_data.DataLoader[Any] = torch_data.DataLoader(
            fetcher,  # type: ignore[arg-type] # torch only calls its `__getitem__`
            batch_size=None,
            sampler=tasks,
            num_workers=loader.num_workers,
            collate_fn=_unchanged,
            pin_memory=loader.pin_memory,
            timeout=loader.timeout,
            worker_init_fn=WorkerStart(plan.threads, loader.worker_init_fn),
            multiprocessing_context=loader.multiprocessing_context,
            generator=torch.Generator().manual_seed(derive(plan.seed, "workers") >> 2),
            persistent_workers=loader.persistent_workers,
            **more,
        )

    def iterate(self, position: Position) -> Iterator[Any]:
        """Return torch's iterator from that position to the end of the epoch."""
        self._tasks.begin = position
        return iter(self._loader)


def fetcher_for(dataset: Any, plan: FetchPlan, order: Sampler | ShardOrder, global_batch: int) -> Fetcher:
    """Return the fetcher for that dataset."""
    if isinstance(order, ShardOrder):
        return KeyedShards(dataset, plan, order, global_batch)
    return KeyedDataset(dataset, plan)


def _unchanged(batch: Any) -> Any:
    return batch
