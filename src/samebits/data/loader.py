"""The loader, and its position in the data, which can be saved and restored as a few whole numbers."""

from __future__ import annotations

import dataclasses
import operator
import warnings
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch.utils import data as torch_data

from samebits.data._fetching import FetchPlan, ShardBatch, Tasks, TorchLoader, fetcher_for
from samebits.data._options import (
    OWN,
    LoaderOptions,
    current_world_size,
    partition_of,
    refuse_order,
    refuse_unsupported,
    sampler_for,
    shards_of,
    unpack_batch_sampler,
    whole,
)
from samebits.data._shards import Endless, Sharded, ShardOrder
from samebits.errors import SamebitsError, SamebitsWarning

if TYPE_CHECKING:
    from collections.abc import Iterator

    from samebits.data.permutation import Partition
    from samebits.data.samplers import Sampler

VERSION = 1
_FIELDS = ("version", "seed", "order", "epoch", "position", "size", "global_batch")


@dataclass(frozen=True, slots=True)
class Position:
    """A position between two batches.

    Args:
        seed: of the loader.
        order: the identity of its sampler.
        partition: of the order into batches.
        epoch: from 0.
        position: samples of the global order of this epoch that were handed over.
    """

    seed: int
    order: int
    partition: Partition
    epoch: int = 0
    position: int = 0

    def after_batch_of(self, position: int) -> Position:
        """Return the position after the global batch that holds that position of this epoch."""
        end = (position // self.partition.global_batch + 1) * self.partition.global_batch
        return dataclasses.replace(self, position=min(end, self.partition.positions))

    def after(self) -> Position:
        """Return the beginning of the next epoch."""
        return dataclasses.replace(self, epoch=self.epoch + 1, position=0)

    def at_epoch(self, epoch: int) -> Position:
        """Return the beginning of that epoch.

        Raises:
            SamebitsError: it is not a whole number from 0; `loader-option`.
        """
        number = _whole_number(epoch)
        if number < 0:
            message = f"the epoch is {epoch!r}; expected a whole number from 0"
            raise SamebitsError(message, slug="loader-option")
        return dataclasses.replace(self, epoch=number, position=0)

    def state(self) -> dict[str, int]:
        """Return the position as it is saved."""
        sizes = self.partition.size, self.partition.global_batch
        values = (VERSION, self.seed, self.order, self.epoch, self.position, *sizes)
        return dict(zip(_FIELDS, values, strict=True))


def check_state(state: Any, now: Position) -> Position:
    """Return the position that a saved state describes.

    Args:
        state: a value of `Position.state`.
        now: the position of the loader that is to go on from there.

    Raises:
        SamebitsError: it is not such a state, or belongs to other data; `loader-state`.
    """
    if not isinstance(state, dict) or not set(_FIELDS) <= state.keys():
        raise _refused(f"it has the entries {sorted(state) if isinstance(state, dict) else state!r}", _FIELDS)
    saved = {name: _whole_number(state[name]) for name in _FIELDS}
    here = now.state()
    reasons = {
        "version": "the format is different",
        "seed": "give the loader the seed of the run that is resumed",
        "size": "the number of samples has changed",
        "order": "the sampler is different",
        "global_batch": "choose batch_size so that batch_size times the number of ranks stays the same",
    }
    for name, reason in reasons.items():
        if saved[name] != here[name]:
            raise _refused(f"{name} is {saved[name]}", here[name], reason)
    position, partition = saved["position"], now.partition
    whole = position % partition.global_batch == 0 or position == partition.positions
    if saved["epoch"] < 0 or not 0 <= position <= partition.positions or not whole:
        raise _refused(f"epoch is {saved['epoch']} and position {position}", "the end of a global batch")
    return dataclasses.replace(now, epoch=saved["epoch"], position=position)


def _refused(state: str, expected: Any, reason: str = "it is not a state of this loader") -> SamebitsError:
    message = f"the loader cannot go on from this state: {state}; expected {expected}; {reason}"
    return SamebitsError(message, slug="loader-state")


def _whole_number(value: Any) -> int:
    """Return a value as a whole number; -1 if it is not one."""
    try:
        return -1 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        return -1


class DataLoader(torch_data.DataLoader[Any]):
    """A `torch.utils.data.DataLoader` whose batches follow from the seed, the epoch and the position alone.

    Workers, prefetching, persistent workers, the start method, the number of ranks and resuming change
    neither the order of samples nor the values that loading them draws from Python's `random`, NumPy, torch
    and generators that the dataset holds. Making an iterator draws nothing. See docs/reference/data.md.

    Each `iter()` begins the next epoch; a loop that is left early ends its epoch.

    Args:
        dataset: map-style; or an `IterableDataset`; or one with shards (`num_shards` and
            `iter_shard(number)`), which several workers and ranks may read.
        batch_size: samples of a batch of one rank; None hands over single samples.
        shuffle: in another order in every epoch.
        sampler: one of `samebits.data`; or indices; or one of torch's without a generator of its own.
        batch_sampler: torch's own `BatchSampler` over such a sampler.
        num_workers: processes that load; 0 loads in this process.
        options: `seed` (default: the run seed), `name` (loaders with other names have other orders and
            draws), `world_size` and `rank` (default: torch.distributed's, else of WORLD_SIZE and RANK, else 1
            and 0), `tail` of an epoch (`short`, `drop`, `pad`; see `Partition`), `worker_threads` (threads of
            torch while samples are loaded, default 1); for iterable datasets `lanes` (streams of shards, as
            (parts, turns)) and `shuffle_window` (elements of a stream that are shuffled together, default
            1024); and everything that torch's loader takes; `generator` and `in_order=False` are refused.

    Raises:
        SamebitsError: an option cannot be honoured, `loader-option` or `sampler`; `no-seed`, `seed`, `rank`.
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,  # noqa: FBT001 - torch's own order of arguments
        sampler: Any = None,
        batch_sampler: Any = None,
        num_workers: int = 0,
        **options: Any,
    ) -> None:
        own = {name: options.pop(name) for name in OWN if name in options}
        refuse_unsupported(options)
        if batch_sampler is not None:
            sampler, batch_size, options["drop_last"] = unpack_batch_sampler(batch_sampler)
        self._options = LoaderOptions.of(own, drop_last=bool(options.get("drop_last")))
        size = 1 if batch_size is None else whole("batch_size", batch_size)
        self._sampler: Sampler | ShardOrder
        self._partition: Partition
        if isinstance(dataset, (torch_data.IterableDataset, Sharded)):
            refuse_order(sampler, num_workers, dataset, self._options)
            self._sampler, self._partition = shards_of(dataset, size, self._options, shuffle=bool(shuffle))
        else:
            order = sampler_for(dataset, sampler, shuffle=bool(shuffle))
            self._sampler, self._partition = order, partition_of(order, size, self._options)
        options["drop_last"] = self._options.tail == "drop" and batch_size is not None
        stand_in: Any = _SamplerStandIn(len(self._sampler))
        stand_in.attach(self)
        super().__init__(stand_in, batch_size, sampler=stand_in, num_workers=num_workers, **options)
        # Set past torch's check, which allows no sampler for an iterable dataset.
        object.__setattr__(self, "dataset", dataset)
        self._stand_in = stand_in
        self._position = Position(self._options.seed, self._sampler.identity(), self._partition)
        self._iteration: weakref.ref[LoaderIterator] | None = None
        self._torch_loader: TorchLoader | None = None
        self._warn_of_tail()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_position": self._settled(), "_iteration": None, "_torch_loader": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._stand_in.attach(self)

    @property
    def seed(self) -> int:
        """The seed that order and samples follow from."""
        return self._options.seed

    @property
    def partition(self) -> Partition:
        """The partition of an epoch into batches, and of these into the parts of the ranks."""
        return self._partition

    @property
    def order(self) -> Sampler | ShardOrder:
        """The order of an epoch, of all ranks together."""
        return self._sampler

    def __len__(self) -> int:
        """Return the number of batches of a whole epoch on this rank.

        Raises:
            TypeError: the dataset is iterable: its length is not known.
        """
        if isinstance(self._sampler, ShardOrder):
            raise TypeError("a loader of an iterable dataset has no length")
        return len(self._partition.batches_from(0))

    def __iter__(self) -> Iterator[Any]:  # type: ignore[override] # torch's names its own class
        self._check_world()
        # Called whether or not samples are loaded here: it also settles how MKL chooses threads.
        torch.set_num_threads(torch.get_num_threads())
        # However the last pass went: it may have been read to its last batch, but not to its end.
        position = self._position if self._iteration is None else self._position.after()
        self._position = position
        if self._torch_loader is None or not self.persistent_workers:
            self._torch_loader = self._make_torch_loader()
        iteration = LoaderIterator(self, position.position, self._torch_loader.iterate(position))
        self._iteration = weakref.ref(iteration)
        return iteration

    def _make_torch_loader(self) -> TorchLoader:
        options, order = self._options, self._sampler
        batched = self.batch_size is not None
        plan = FetchPlan(options.seed, order.repeats, batched, self.collate_fn, options.worker_threads)
        fetcher = fetcher_for(self.dataset, plan, order, self._partition.global_batch)
        return TorchLoader(self, Tasks(order, options.seed, self._partition), fetcher)

    def set_epoch(self, epoch: int) -> None:
        """Make the next `iter()` that epoch; not needed. A resumed epoch goes on from its position.

        Args:
            epoch: from 0.
        """
        there = self._position.at_epoch(epoch)
        iteration = None if self._iteration is None else self._iteration()
        unread = iteration is not None and iteration.begun_at == self._position.position
        if there.epoch == self._position.epoch and (self._iteration is None or unread):
            return
        self._position = there
        if unread and iteration is not None and self._torch_loader is not None:
            # Lightning makes the iterator before it tells the epoch.
            iteration.restart(self._torch_loader.iterate(there))
        else:
            self._iteration = None

    def state_dict(self) -> dict[str, int]:
        """Return the position: samples that were handed over, not those that workers have loaded ahead.

        All numbers are whole. `position` counts samples of the global order, of all ranks together.
        """
        return self._settled().state()

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Make the next `iter()` go on where `state_dict` was called.

        The number of workers may change. The number of ranks may change if `batch_size` times that number
        stays the same.

        Raises:
            SamebitsError: the state belongs to another seed, order, number of samples or global batch;
                `loader-state`.
        """
        self._position = check_state(state, self._position)
        self._iteration = None

    def _settled(self) -> Position:
        """Return the position; an epoch whose loop was left, or ran to its end, is over."""
        iteration = None if self._iteration is None else self._iteration()
        if self._iteration is not None and (iteration is None or iteration.ended):
            return self._position.after()
        return self._position

    def _advance(self, iteration: LoaderIterator, start: int) -> None:
        if self._iteration is not None and self._iteration() is iteration:
            self._position = self._position.after_batch_of(start)

    def _streams(self) -> frozenset[int]:
        partition, order = self._partition, self._sampler
        if not isinstance(partition, Endless) or not isinstance(order, ShardOrder):
            return frozenset()
        return partition.streams_of_rank(order.streams)

    def _is_whole(self, count: int) -> bool:
        """Tell whether a batch of that many elements is handed over."""
        return count == self._partition.batch_size or (count > 0 and self._options.tail == "short")

    def _is_current(self, iteration: LoaderIterator) -> bool:
        return self._iteration is not None and self._iteration() is iteration

    def _check_world(self) -> None:
        options, world_size = self._options, current_world_size()
        if torch.distributed.is_available() and torch.distributed.is_initialized() and options.implied:
            rank = torch.distributed.get_rank()
            if (world_size, rank) != (options.world_size, options.rank):
                message = (
                    f"the loader was made for rank {options.rank} of {options.world_size}, and this is rank "
                    f"{rank} of {world_size}; make the loader after torch.distributed is initialised"
                )
                raise SamebitsError(message, slug="rank")

    def _warn_of_tail(self) -> None:
        partition = self._partition
        text = ""
        if partition.ranks_without_last:
            text = (
                f"the last batch of an epoch has {partition.rest} samples for {partition.world_size} ranks, "
                f"so {partition.ranks_without_last} get none; ranks that wait for each other need "
                "torch.distributed.algorithms.Join, or tail='drop' or 'pad'"
            )
        elif isinstance(partition, Endless) and partition.world_size > 1:
            text = (
                "the ranks read different shards of an iterable dataset and may get different numbers of "
                "batches; ranks that wait for each other need torch.distributed.algorithms.Join"
            )
        elif partition.tail == "pad" and partition.positions > partition.size:
            repeated = partition.positions - partition.size
            text = f"tail='pad' repeats {repeated} samples at the end of each epoch"
        if text:
            warnings.warn(text, SamebitsWarning, stacklevel=3)


class LoaderIterator:
    """One pass over a loader.

    Args:
        loader: its position moves on with each batch that is handed over.
        begun_at: the position of its first sample.
        batches: torch's own iterator.
    """

    def __init__(self, loader: DataLoader, begun_at: int, batches: Iterator[Any]) -> None:
        self._loader, self.begun_at, self._batches = loader, begun_at, batches
        self._open = set(loader._streams())
        self.ended = False

    def __iter__(self) -> LoaderIterator:
        return self

    def __len__(self) -> int:
        return len(self._loader)

    def restart(self, batches: Iterator[Any]) -> None:
        """Begin at the start of another epoch instead; nothing was read yet."""
        self.begun_at, self._batches = 0, batches

    def __next__(self) -> Any:
        if self.ended:
            raise StopIteration
        if self._loader.persistent_workers and not self._loader._is_current(self):
            message = (
                "another iteration of this loader has begun, and its persistent workers load for that one; "
                "finish one iteration before the next, or leave persistent_workers out"
            )
            raise SamebitsError(message, slug="loader-iteration")
        while not self.ended:
            try:
                batch, start = next(self._batches)
            except StopIteration:
                break
            self._loader._advance(self, start)
            if not isinstance(batch, ShardBatch):
                return batch
            self._open -= set(batch.ended)
            if self._loader._is_whole(batch.elements):
                return batch.batch
            self.ended = not self._open
        self.ended = True
        raise StopIteration


class _SamplerStandIn:
    """Takes the place of torch's sampler, and refuses to be used for another loader."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._loader: weakref.ref[DataLoader] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return _SamplerStandIn, (self._size,)

    def attach(self, loader: DataLoader) -> None:
        """Remember the loader whose sampler it stands for."""
        self._loader = weakref.ref(loader)

    def set_epoch(self, epoch: int) -> None:
        """Pass the epoch on to the loader; Lightning calls this on samplers."""
        loader = None if self._loader is None else self._loader()
        if loader is not None:
            loader.set_epoch(epoch)

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[int]:
        message = (
            "another loader was built from the parts of a samebits.DataLoader and would lose its order and "
            "keys; samebits spreads batches over ranks itself: leave the loader out of accelerate's "
            "prepare(), and give Lightning Trainer(use_distributed_sampler=False)"
        )
        raise SamebitsError(message, slug="loader-rebuilt")
