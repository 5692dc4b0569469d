"""`samebits.DataLoader`: torch's, with an order and samples that follow from (seed, epoch, position)."""

from __future__ import annotations

import warnings
import weakref
from typing import TYPE_CHECKING, Any

import torch
from torch.utils import data as torch_data

from samebits.data.fetching import BatchTask, FetchPlan, KeyedDataset, WorkerStart
from samebits.data.options import (
    OWN,
    LoaderOptions,
    current_world_size,
    partition_of,
    refuse_unsupported,
    sampler_for,
    unpack_batch_sampler,
)
from samebits.data.position import Position, check_state
from samebits.determinism.seeds import derive
from samebits.errors import SamebitsError, SamebitsWarning

if TYPE_CHECKING:
    from collections.abc import Iterator

    from samebits.data.partition import Partition
    from samebits.data.samplers import Sampler


class DataLoader(torch_data.DataLoader[Any]):
    """A `torch.utils.data.DataLoader` whose batches follow from the seed, the epoch and the position alone.

    The number of workers, prefetching, persistent workers, the start method, the number of ranks and where a
    run was resumed change neither the order of samples nor what their loading draws from Python's `random`,
    NumPy, torch and generators that the dataset holds. Making an iterator draws nothing. docs/data.md.

    Each `iter()` begins the next epoch; a loop that is left early ends its epoch.

    Args:
        dataset: map-style.
        batch_size: samples of a batch of one rank; None hands over single samples.
        shuffle: in another order in every epoch.
        sampler: one of `samebits.data`; or indices; or one of torch's without a generator of its own.
        batch_sampler: torch's own `BatchSampler` over such a sampler.
        num_workers: processes that load; 0 loads in this process.
        options: `seed` (default: the run seed), `name` (loaders with other names have other orders and
            draws), `world_size` and `rank` (default: torch.distributed's, else of WORLD_SIZE and RANK, else 1
            and 0), `tail` of an epoch (`short`, `drop`, `pad`; see `Partition`), `worker_threads` (threads of
            torch while samples are loaded, default 1), and everything that torch's loader takes; `generator`
            and `in_order=False` are refused.

    Raises:
        SamebitsError: an option cannot be met, `loader-option` or `sampler`; `no-seed`, `seed`, `rank`.
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
        self._sampler = sampler_for(dataset, sampler, shuffle=bool(shuffle))
        self._partition = partition_of(self._sampler, 1 if batch_size is None else batch_size, self._options)
        options["drop_last"] = self._options.tail == "drop" and batch_size is not None
        super().__init__(
            dataset, batch_size, sampler=_Refusing(len(self._sampler)), num_workers=num_workers, **options
        )
        self._position = Position(self._options.seed, self._sampler.identity(), self._partition)
        self._iteration: weakref.ref[LoaderIterator] | None = None
        self._inner: _Inner | None = None
        self._warn_of_tail()

    @property
    def seed(self) -> int:
        """What order and samples follow from."""
        return self._options.seed

    @property
    def partition(self) -> Partition:
        """How the order of an epoch is cut into batches, and these into the parts of the ranks."""
        return self._partition

    @property
    def order(self) -> Sampler:
        """The order of an epoch, of all ranks together."""
        return self._sampler

    def __len__(self) -> int:
        """Batches of a whole epoch on this rank."""
        return len(self._partition.batches_from(0))

    def __iter__(self) -> Iterator[Any]:  # type: ignore[override] # torch's names its own class
        self._check_world()
        # The same call whether or not samples are loaded here: it also settles how MKL chooses threads.
        torch.set_num_threads(torch.get_num_threads())
        position = self._settled()
        self._position = position
        if self._inner is None or not self.persistent_workers:
            self._inner = _Inner(self)
        iteration = LoaderIterator(self, self._inner.iterate(position))
        self._iteration = weakref.ref(iteration)
        return iteration

    def set_epoch(self, epoch: int) -> None:
        """The next `iter()` is that epoch; not needed. An epoch that is resumed goes on where it was.

        Args:
            epoch: from 0.
        """
        there = self._position.at_epoch(epoch)
        if self._iteration is None and there.epoch == self._position.epoch:
            return
        self._position, self._iteration = there, None

    def state_dict(self) -> dict[str, int]:
        """Where the loader is: samples that were handed over, not those that workers have loaded ahead.

        All numbers are whole. `position` counts samples of the global order, of all ranks together.
        """
        return self._settled().state()

    def load_state_dict(self, state: dict[str, int]) -> None:
        """The next `iter()` goes on where `state_dict` was called.

        The number of workers may be another one, and so may the number of ranks when `batch_size` times that
        number stays the same.

        Raises:
            SamebitsError: the state is of another seed, order, number of samples or global batch;
                `loader-state`.
        """
        self._position = check_state(state, self._position)
        self._iteration = None

    def _settled(self) -> Position:
        """The position; an epoch whose loop was left, or ran to its end, is over."""
        iteration = None if self._iteration is None else self._iteration()
        if self._iteration is not None and (iteration is None or iteration.ended):
            return self._position.after()
        return self._position

    def _advance(self, iteration: LoaderIterator) -> None:
        if self._iteration is not None and self._iteration() is iteration:
            self._position = self._position.one_batch_on()

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
        cut = self._partition
        text = ""
        if cut.ranks_without_last:
            text = (
                f"the last batch of an epoch has {cut.rest} samples for {cut.world_size} ranks, and "
                f"{cut.ranks_without_last} get none; ranks that wait for each other need "
                "torch.distributed.algorithms.Join, or tail='drop' or 'pad'"
            )
        elif cut.positions > cut.size:
            text = f"tail='pad' repeats {cut.positions - cut.size} samples at the end of each epoch"
        if text:
            warnings.warn(text, SamebitsWarning, stacklevel=3)


class LoaderIterator:
    """One pass over a loader.

    Args:
        loader: whose position moves on with each batch that is handed over.
        inner: torch's own iterator.
    """

    def __init__(self, loader: DataLoader, inner: Iterator[Any]) -> None:
        self._loader, self._inner = loader, inner
        self.ended = False

    def __iter__(self) -> LoaderIterator:
        return self

    def __len__(self) -> int:
        return len(self._loader)

    def __next__(self) -> Any:
        if self.ended:
            raise StopIteration
        if self._loader.persistent_workers and not self._loader._is_current(self):
            message = (
                "another iteration of this loader has begun, and its persistent workers load for that one; "
                "finish one before the next, or leave persistent_workers out"
            )
            raise SamebitsError(message, slug="loader-iteration")
        try:
            batch = next(self._inner)
        except StopIteration:
            self.ended = True
            raise
        self._loader._advance(self)
        return batch


class _Tasks:
    """The batches of one pass, as torch's loader asks its sampler for them."""

    def __init__(self, sampler: Sampler, seed: int, cut: Partition) -> None:
        self._sampler, self._seed, self._cut = sampler, seed, cut
        self.begin: Position | None = None

    def __len__(self) -> int:
        return len(self._cut.batches_from(0))

    def __iter__(self) -> Iterator[BatchTask]:
        # Not a generator: one would read where to begin at its first `next`, when that may have moved on.
        assert self.begin is not None  # noqa: S101 - the loader sets it before each pass
        return self._from(self.begin.epoch, self.begin.position)

    def _from(self, epoch: int, position: int) -> Iterator[BatchTask]:
        for batch in self._cut.batches_from(position):
            start, stop = self._cut.part(batch)
            yield BatchTask(epoch, start, tuple(self._indices(epoch, start, stop)))

    def _indices(self, epoch: int, start: int, stop: int) -> list[int]:
        size = len(self._sampler)
        inside: list[int] = self._sampler.indices(epoch, start, min(stop, size), seed=self._seed).tolist()
        while len(inside) < stop - start:  # tail="pad": from the beginning of the order again
            more = min(size, stop - start - len(inside))
            again = (start + len(inside)) % size
            inside += self._sampler.indices(epoch, again, min(again + more, size), seed=self._seed).tolist()
        return inside


class _Inner:
    """Torch's own loader over whole batches, with nothing in it that draws from a global generator."""

    def __init__(self, loader: DataLoader) -> None:
        options = loader._options
        self._tasks = _Tasks(loader._sampler, options.seed, loader._partition)
        plan = FetchPlan(
            options.seed,
            loader._sampler.repeats,
            loader.batch_size is not None,
            loader.collate_fn,
            options.worker_threads,
        )
        more: dict[str, Any] = {} if loader.num_workers == 0 else {"prefetch_factor": loader.prefetch_factor}
        generator = torch.Generator().manual_seed(derive(options.seed, "workers") >> 2)
        self._loader: torch_data.DataLoader[Any] = torch_data.DataLoader(
            KeyedDataset(loader.dataset, plan),  # type: ignore[arg-type] # torch asks for no more than these methods
            batch_size=None,
            sampler=self._tasks,
            num_workers=loader.num_workers,
            collate_fn=_unchanged,
            pin_memory=loader.pin_memory,
            timeout=loader.timeout,
            worker_init_fn=WorkerStart(options.worker_threads, loader.worker_init_fn),
            multiprocessing_context=loader.multiprocessing_context,
            generator=generator,
            persistent_workers=loader.persistent_workers,
            **more,
        )

    def iterate(self, position: Position) -> Iterator[Any]:
        """Torch's iterator from that position to the end of the epoch."""
        self._tasks.begin = position
        return iter(self._loader)


def _unchanged(batch: Any) -> Any:
    return batch


class _Refusing:
    """Stands where torch's loader has its sampler: whoever takes it to build a loader is told why not."""

    def __init__(self, size: int) -> None:
        self._size = size

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[int]:
        message = (
            "another loader was built from the parts of a samebits.DataLoader, and would lose its order "
            "and keys; it spreads batches over the ranks itself, so leave it out of accelerate's prepare() and set "
            "Lightning's Trainer(use_distributed_sampler=False)"
        )
        raise SamebitsError(message, slug="loader-rebuilt")
