"""The undocumented names of torch's DataLoaders.

Read in torch 2.13.0, torch/utils/data/dataloader.py and _utils/fetch.py; the names are the same in 2.6.0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import FrameType


def loader_iterator_class() -> type[Any] | None:
    """Return the common base of the iterators of `DataLoader`; without it no batch events are recorded."""
    from torch.utils.data import dataloader

    return getattr(dataloader, "_BaseDataLoaderIter", None)


def loader_iterator_classes() -> list[type[Any]]:
    """List the iterator classes of DataLoaders that exist by now, the common base first; empty without it."""
    classes: list[type[Any]] = []
    waiting = [loader_iterator_class()]
    while waiting:
        kind = waiting.pop(0)
        if kind is not None and kind not in classes:
            classes.append(kind)
            waiting += kind.__subclasses__()
    return classes


# Methods of the iterators of DataLoaders. Without the first, persistent workers keep their seeds from epoch
# to epoch; without the second, samplers below another sampler draw from the global generator.
LOADER_RESET = "_reset"
LOADER_NEXT_INDEX = "_next_index"


def set_base_seed(iterator: Any, seed: int) -> None:
    """Set the seed to which worker `i` adds `i`; without the attribute torch's own draw stays."""
    if hasattr(iterator, "_base_seed"):
        iterator._base_seed = seed


def shared_seed(iterator: Any) -> Any:
    """Return the seed that persistent workers get with the message that a new epoch begins."""
    return getattr(iterator, "_shared_seed", None)


def set_shared_seed(iterator: Any, value: Any) -> None:
    """Replace the result of `shared_seed`; without the attribute persistent workers keep their seeds."""
    if hasattr(iterator, "_shared_seed"):
        iterator._shared_seed = value


def set_worker_seed(worker_info: Any, seed: int) -> None:
    """Make `get_worker_info().seed` return another seed; torch itself made the object read-only."""
    object.__setattr__(worker_info, "seed", seed)


def base_seed(iterator: Any) -> int | None:
    """Return the seed to which worker `i` adds `i`; None without workers or without the attribute."""
    seed = getattr(iterator, "_base_seed", None)
    n_workers: int = getattr(iterator, "_num_workers", 0)
    return seed if isinstance(seed, int) and n_workers else None


def n_yielded(iterator: Any) -> int:
    """Return how many batches an iterator has handed over in this epoch; 0 without the attribute."""
    count: int = getattr(iterator, "_num_yielded", 0)
    return count


def worker_processes(iterator: Any) -> frozenset[int]:
    """Return the process numbers of an iterator's workers; none without the attribute."""
    return frozenset(worker.pid for worker in getattr(iterator, "_workers", ()))


LOADER_FETCH = "fetch"


def loader_fetchers() -> list[type[Any]]:
    """Return the classes whose method `LOADER_FETCH` makes one batch, in a worker or in the main process."""
    from torch.utils.data._utils import fetch

    kinds = (getattr(fetch, name, None) for name in ("_MapDatasetFetcher", "_IterableDatasetFetcher"))
    return [kind for kind in kinds if kind is not None and LOADER_FETCH in vars(kind)]


def is_worker_loop(frame: FrameType) -> bool:
    """Tell if that is the loop of a worker process (torch/utils/data/_utils/worker.py, `_worker_loop`)."""
    return frame.f_globals.get("__name__") == "torch.utils.data._utils.worker"


# What an iterator asks for the next indices: the batch sampler, or the sampler. Without the attribute samples
# are not keyed, with a warning.
INDEX_SAMPLER = "_index_sampler"


def index_sampler(loader: Any) -> Any:
    """Return the sampler that gives a loader's iterator its indices; None without the attribute."""
    return getattr(loader, INDEX_SAMPLER, None)


def replace_index_sampler(iterator: Any, sampler: Any) -> None:
    """Make an iterator that lives on take its indices from another sampler in its next epoch."""
    if hasattr(iterator, INDEX_SAMPLER):
        iterator._index_sampler = sampler


def persistent_iterator(loader: Any) -> Any:
    """Return the iterator that a DataLoader with persistent workers uses again; None when it has none.

    Without the attribute, indices that were fetched ahead in an epoch that was left early are counted for the
    next one.
    """
    return getattr(loader, "_iterator", None)
