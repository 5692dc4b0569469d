"""Torch's own loader, given whole batches to load: it has the workers, the queues and the pinned memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.utils import data as torch_data

from samebits.data.fetching import BatchTask, Fetcher, FetchPlan, KeyedDataset, KeyedShards, WorkerStart
from samebits.data.shards import ShardOrder
from samebits.determinism.seeds import derive

if TYPE_CHECKING:
    from collections.abc import Iterator

    from samebits.data.partition import Partition
    from samebits.data.position import Position
    from samebits.data.samplers import Sampler


class Tasks:
    """The batches of one pass, as torch's loader asks its sampler for them.

    Args:
        sampler: the order of a map-style dataset, or that of shards.
        seed: of the loader.
        cut: of the order into batches.
    """

    def __init__(self, sampler: Sampler | ShardOrder, seed: int, cut: Partition) -> None:
        self._sampler, self._seed, self._cut = sampler, seed, cut
        self._passing = 0
        self.begin: Position | None = None

    def __len__(self) -> int:
        return len(self._cut.batches_from(0))

    def __iter__(self) -> Iterator[BatchTask]:
        # Not a generator: one would read where to begin at its first `next`, when that may have moved on.
        assert self.begin is not None  # noqa: S101 - the loader sets it before each pass
        self._passing += 1
        return self._from(self.begin.epoch, self.begin.position, self._passing)

    def _from(self, epoch: int, position: int, passing: int) -> Iterator[BatchTask]:
        for batch in self._cut.batches_from(position):
            start, stop = self._cut.part(batch)
            yield BatchTask(epoch, start, stop, self._indices(epoch, start, stop), passing)

    def _indices(self, epoch: int, start: int, stop: int) -> tuple[int, ...]:
        sampler = self._sampler
        if isinstance(sampler, ShardOrder):
            return ()
        size, found = len(sampler), list[int]()
        while len(found) < stop - start:  # tail="pad" goes on from the beginning of the order
            first = (start + len(found)) % size
            last = min(size, first + stop - start - len(found))
            found += sampler.indices(epoch, first, last, seed=self._seed).tolist()
        return tuple(found)


class Inner:
    """Torch's loader over batches, with nothing in it that draws from a global generator.

    Args:
        loader: the user's, for its options.
        tasks: what torch's loader asks for the next batch.
        plan: how batches are made.
    """

    def __init__(self, loader: torch_data.DataLoader[Any], tasks: Tasks, fetcher: Fetcher) -> None:
        self._tasks = tasks
        plan: FetchPlan = fetcher.plan
        more: dict[str, Any] = {} if loader.num_workers == 0 else {"prefetch_factor": loader.prefetch_factor}
        self._loader: torch_data.DataLoader[Any] = torch_data.DataLoader(
            fetcher,  # type: ignore[arg-type] # torch asks for no more than its method
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
        """Torch's iterator from that position to the end of the epoch."""
        self._tasks.begin = position
        return iter(self._loader)


def fetcher_for(dataset: Any, plan: FetchPlan, order: Sampler | ShardOrder, global_batch: int) -> Fetcher:
    """What loads batches of that dataset."""
    if isinstance(order, ShardOrder):
        return KeyedShards(dataset, plan, order, global_batch)
    return KeyedDataset(dataset, plan)


def _unchanged(batch: Any) -> Any:
    return batch
