"""The options of a loader, checked."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils.data import BatchSampler

from samebits._text.printable import with_article
from samebits.data._shards import Endless, Sharded, ShardOrder, ShardStreams, as_shards
from samebits.data.permutation import Partition
from samebits.data.samplers import Listed, Sampler, Sequential, Shuffled, Weighted, shared_seed
from samebits.errors import SamebitsError
from samebits.rng.seeds import check_seed, derive
from samebits.rng.states import current_rank

OWN = ("seed", "name", "world_size", "rank", "tail", "worker_threads", "lanes", "shuffle_window")


@dataclass(frozen=True, slots=True)
class LoaderOptions:
    """The options that torch's loader does not have.

    Args:
        seed: of this loader: the run seed, or what follows from it and the loader's name.
        world_size: number of ranks that batches are spread over.
        rank: the number of this one.
        tail: how a last batch that is not full is treated.
        worker_threads: threads of torch while samples are loaded.
        implied: whether `world_size` and `rank` come from the process group or the environment.
        lanes: (parts, turns) of an iterable dataset; None for the default.
        window: how many elements of a shard stream are shuffled together.
    """

    seed: int
    world_size: int
    rank: int
    tail: str
    worker_threads: int
    implied: bool
    lanes: Any
    window: int

    @classmethod
    def of(cls, given: dict[str, Any], *, drop_last: bool) -> LoaderOptions:
        """Check the options that were given, and fill in the others.

        Raises:
            SamebitsError: `loader-option`, `no-seed`, `seed`, `rank`.
        """
        seed = shared_seed() if given.get("seed") is None else check_seed(given["seed"])
        if given.get("name"):
            seed = derive(seed, "loader name", str(given["name"]))
        tail = given.get("tail") or ("drop" if drop_last else "short")
        if drop_last and tail != "drop":
            raise _wrong(f"drop_last=True and tail={tail!r} contradict each other; give one of them")
        world_size, rank = _world(given.get("world_size"), given.get("rank"))
        threads = whole("worker_threads", given.get("worker_threads", 1))
        window = whole("shuffle_window", given.get("shuffle_window", 1024))
        implied = given.get("rank") is None
        return cls(seed, world_size, rank, tail, threads, implied, given.get("lanes"), window)


def _world(world_size: Any, rank: Any) -> tuple[int, int]:
    if (world_size is None) != (rank is None):
        raise _wrong("one of world_size and rank was given; expected both or none")
    if world_size is not None:
        if isinstance(rank, bool) or not isinstance(rank, int):
            raise _wrong(f"rank is {rank!r}; expected a whole number from 0 to world_size - 1")
        return whole("world_size", world_size), rank
    return current_world_size(), current_rank()


def current_world_size() -> int:
    """Return the number of processes of the run: from torch's process group, else WORLD_SIZE, else 1.

    Raises:
        SamebitsError: WORLD_SIZE is not a whole number from 1; `rank`.
    """
    distributed: Any = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return int(distributed.get_world_size())
    text = os.environ.get("WORLD_SIZE", "1")
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        message = f"the environment variable WORLD_SIZE is {text!r}; expected a whole number from 1"
        raise SamebitsError(message, slug="rank")
    return int(text)


def whole(name: str, value: Any) -> int:
    """Return the value if it is a whole number from 1.

    Raises:
        SamebitsError: it is not; `loader-option`.
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise _wrong(f"{name} is {value!r}; expected a whole number from 1")
    return value


def _wrong(message: str) -> SamebitsError:
    return SamebitsError(message, slug="loader-option")


def refuse_unsupported(options: dict[str, Any]) -> None:
    """Refuse options of torch's loader under which batches would not be the same.

    Raises:
        SamebitsError: `loader-option`.
    """
    if not options.get("in_order", True):
        raise _wrong("in_order=False hands over batches as workers finish; leave it out")
    if options.get("generator") is not None:
        raise _wrong(
            "generator would have no effect: order and draws follow from the seed; give `seed` instead"
        )


def unpack_batch_sampler(batch_sampler: Any) -> tuple[Any, int, bool]:
    """Return the sampler, batch size and `drop_last` of torch's own `BatchSampler`.

    Raises:
        SamebitsError: it is of another class; `sampler`.
    """
    if type(batch_sampler) is not BatchSampler:
        raise _no_order("batch_sampler", batch_sampler)
    return batch_sampler.sampler, batch_sampler.batch_size, batch_sampler.drop_last


def sampler_for(dataset: Any, sampler: Any, *, shuffle: bool) -> Sampler:
    """Return the order that a loader was asked for.

    Args:
        dataset: its length counts.
        sampler: ours; None; indices; or one of torch's that draws from no generator of its own.
        shuffle: in another order in every epoch.

    Raises:
        SamebitsError: its order does not follow from (seed, epoch, position); `sampler`.
    """
    if sampler is None:
        try:
            size = len(dataset)
        except TypeError as error:
            kind = f"{type(dataset).__module__}.{type(dataset).__qualname__}".removeprefix("builtins.")
            which = f"the dataset is {with_article(kind)}, which has no length ({error})"
            raise _wrong(f"{which}; expected a dataset with a length, or a sampler") from error
        return Shuffled(size) if shuffle else Sequential(size)
    if shuffle:
        raise _wrong("sampler and shuffle=True contradict each other; give one of them")
    if isinstance(sampler, Sampler):
        return sampler
    if isinstance(sampler, (list, tuple, range, torch.Tensor)) or type(sampler).__module__ == "numpy":
        return Listed(sampler)
    return _of_torch(sampler)


def _of_torch(sampler: Any) -> Sampler:
    data, kind = torch.utils.data, type(sampler)
    if getattr(sampler, "generator", None) is not None:
        raise _no_order("sampler", sampler, "it has a generator of its own")
    if kind is data.SequentialSampler:
        return Sequential(len(sampler.data_source))
    if kind is data.RandomSampler and not sampler.replacement and len(sampler) == len(sampler.data_source):
        return Shuffled(len(sampler))
    if kind is data.SubsetRandomSampler:
        return Listed(list(sampler.indices), shuffle=True)
    if kind is data.WeightedRandomSampler and sampler.replacement:
        return Weighted(sampler.weights.numpy(), sampler.num_samples)
    if isinstance(sampler, data.distributed.DistributedSampler):
        reason = (
            "this loader spreads batches over the ranks itself; leave the sampler out and give shuffle=True"
        )
        raise _no_order("sampler", sampler, reason)
    raise _no_order("sampler", sampler)


def refuse_order(sampler: Any, workers: int, dataset: Any, options: LoaderOptions) -> None:
    """Refuse options that an iterable dataset cannot have.

    Raises:
        SamebitsError: a sampler, several readers without shards, padding; `loader-option`.
    """
    if sampler is not None:
        raise _wrong("an iterable dataset has no indices; leave sampler and batch_sampler out")
    if options.tail == "pad":
        raise _wrong("tail='pad' needs a dataset with a length, and this one is iterable; take short or drop")
    if options.tail == "drop" and options.world_size > 1:
        raise _wrong(
            "tail='drop' does not work for an iterable dataset over several ranks: no rank knows whether the "
            "others' parts of a batch are full; take tail='short'"
        )
    as_shards(dataset, workers, options.world_size)


def shards_of(
    dataset: Any, batch_size: int, options: LoaderOptions, *, shuffle: bool
) -> tuple[ShardOrder, Endless]:
    """Return the order of an iterable dataset, and its partition.

    Raises:
        SamebitsError: it has no shard, or `lanes` does not fit; `loader-option`.
    """
    shards = int(dataset.num_shards) if isinstance(dataset, Sharded) else 1
    if shards < 1:
        raise _wrong(f"the dataset has {shards} shards; expected one or more")
    partition = Endless(shards, batch_size, options.world_size, options.rank, options.tail)
    streams = ShardStreams.of(options.lanes, shards, partition.global_batch)
    return ShardOrder(shards, streams, shuffle, options.window if shuffle else 1), partition


def _no_order(name: str, value: Any, reason: str = "its order may depend on earlier draws") -> SamebitsError:
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    message = (
        f"the {name} is of type {kind}: {reason}; expected an order that follows from (seed, epoch, "
        "position): one of samebits.data, indices, or shuffle=True"
    )
    return SamebitsError(message, slug="sampler")


def partition_of(sampler: Sampler, batch_size: int, options: LoaderOptions) -> Partition:
    """Return the partition of the order into batches.

    Raises:
        SamebitsError: the sampler was made for another global batch; `sampler`.
    """
    partition = Partition(len(sampler), batch_size, options.world_size, options.rank, options.tail)
    made_for = getattr(sampler, "batch_size", partition.global_batch)
    if made_for != partition.global_batch:
        message = (
            f"the sampler makes batches of {made_for}, and the loader takes {partition.global_batch} "
            f"({batch_size} for each of {options.world_size} ranks); expected the same number"
        )
        raise SamebitsError(message, slug="sampler")
    return partition
