"""Loads the samples of one batch, each with its own key; runs in a worker or in the main process."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch.utils.data import get_worker_info

from samebits.determinism.sample_keys import EpochKeys
from samebits.determinism.sample_rng import SampleRng

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@dataclass(frozen=True, slots=True)
class BatchTask:
    """What is sent to a worker for one batch.

    Args:
        epoch: from 0; it travels with the indices, so persistent workers cannot have another one.
        start: the position of the first sample in the global order.
        indices: of the samples.
    """

    epoch: int
    start: int
    indices: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class FetchPlan:
    """How batches are made of samples.

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


class KeyedDataset:
    """Stands in for the dataset in torch's own loader: an index there is a whole `BatchTask`.

    Args:
        dataset: the user's.
        plan: how batches are made.
    """

    def __init__(self, dataset: Any, plan: FetchPlan) -> None:
        self.dataset, self.plan = dataset, plan
        self._rng: SampleRng | None = None
        self._keys: EpochKeys | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"dataset": self.dataset, "plan": self.plan, "_rng": None, "_keys": None}

    def __getitem__(self, task: BatchTask) -> Any:
        if self._rng is None:
            self._rng = SampleRng({"dataset": self.dataset, "collate_fn": self.plan.collate})
        rng = self._rng
        if self._keys is None or self._keys.epoch != task.epoch:
            self._keys = EpochKeys(self.plan.seed, task.epoch)
            rng.held.look(again=True)
        rng.begin_batch()
        with _surroundings(rng, self.plan.threads):
            batch = self._load(task, rng, self._keys)
            if rng.held.look(again=True):
                # The dataset made a generator and keeps it. What it drew before it had a key is drawn anew.
                batch = self._load(task, rng, self._keys)
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
        rng.key(keys.batch(task.start), epoch, "batch", task.start)
        return self.plan.collate(samples if self.plan.batched else samples[0])


@dataclass(frozen=True)
class WorkerStart:
    """Prepares a worker: the user's dataset where it is looked for, threads, the user's own function.

    Args:
        threads: of torch in the worker; torch itself sets 1.
        user: the loader's `worker_init_fn`.
    """

    threads: int
    user: Callable[[int], Any] | None

    def __call__(self, worker: int) -> None:
        """Called by torch in the worker."""
        torch.set_num_threads(self.threads)
        info: Any = get_worker_info()
        if isinstance(info.dataset, KeyedDataset):
            # Read-only by torch's own choice; `worker_init_fn` expects the user's dataset there.
            object.__setattr__(info, "dataset", info.dataset.dataset)
        if self.user is not None:
            self.user(worker)


@contextmanager
def _surroundings(rng: SampleRng, threads: int) -> Iterator[None]:
    """In the main process: what a worker has, and afterwards everything as it was."""
    if get_worker_info() is not None:
        yield
        return
    with ExitStack() as stack:
        stack.enter_context(rng.kept())
        before = torch.get_num_threads()
        if before != threads:
            torch.set_num_threads(threads)
            stack.callback(torch.set_num_threads, before)
        yield
