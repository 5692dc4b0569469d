"""What happens inside the workers of a DataLoader."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, NamedTuple

from samebits.determinism import rng
from samebits.determinism.epochs import EpochId
from samebits.determinism.process import PROCESS
from samebits.hooks.interruptions import ignored
from samebits.torch_loaders import set_worker_seed

if TYPE_CHECKING:
    from collections.abc import Callable

    from samebits.determinism.epochs import LoaderEpoch


class WorkerState:
    """What a worker must remember from its start to its next epochs."""

    def __init__(self) -> None:
        self.users_own: frozenset[str] = frozenset()
        self.keyed_epoch: Any = None


# A worker process serves one iterator of one loader.
WORKER = WorkerState()


class WorkerInit(NamedTuple):
    """Stands in for a loader's `worker_init_fn`: puts the worker under control, then calls the user's.

    Args:
        epoch: the iteration that the worker is started for.
        user: the loader's own `worker_init_fn`.
        reseed: whether to seed all RNG sources; False where the user's own generator decides, and torch's
            seeding of Python, NumPy and torch stays as it is.
    """

    epoch: LoaderEpoch
    user: Callable[[int], Any] | None
    reseed: bool

    def __call__(self, worker: int) -> None:
        """Called by torch in the worker, after torch has seeded it and before the data are first touched."""
        _keep_epoch(self.epoch)
        _show_users_dataset()
        # A scope of its own: persistent workers do not run the user's function again in later epochs.
        _enter(self.epoch, worker, "init")
        WORKER.users_own = frozenset()
        if self.reseed:
            _seed_worker(_worker_info().seed)
        before = _states() if self.reseed and self.user is not None else {}
        if self.user is not None:
            self.user(worker)
        after = _states() if before else {}
        WORKER.users_own = frozenset(name for name in after if after[name] != before.get(name))
        _enter(self.epoch, worker)


class NextEpoch:
    """Sent to persistent workers in place of the shared seed; arriving there, it begins the epoch.

    Torch tells its workers that an epoch begins by a message that holds the shared seed. Unpickling this
    gives the plain seed, so that torch's code in the worker sees nothing else.

    Args:
        epoch: the iteration that begins.
        shared_seed: what torch sends.
        reseed: as in `WorkerInit`.
    """

    def __init__(self, epoch: LoaderEpoch, shared_seed: Any, *, reseed: bool) -> None:
        self.epoch, self.shared_seed, self.reseed = epoch, shared_seed, reseed

    def __reduce__(self) -> tuple[Any, ...]:
        return _begin_epoch, (self.epoch, self.shared_seed, self.reseed)


def _begin_epoch(epoch: LoaderEpoch, shared_seed: Any, reseed: bool) -> Any:  # noqa: FBT001 - from pickle
    info = _worker_info()
    if info is not None:
        _keep_epoch(epoch)
        _enter(epoch, info.id)
        if reseed:
            set_worker_seed(info, epoch.base_seed + info.id)
            _seed_worker(info.seed)
    return shared_seed


def _keep_epoch(epoch: LoaderEpoch) -> None:
    """For iterable datasets, whose elements do not bring the epoch with them."""
    WORKER.keyed_epoch = EpochId(epoch.samples_seed, epoch.number)


def _show_users_dataset() -> None:
    """Where samples are keyed, `get_worker_info().dataset` is the script's own all the same."""
    info = _worker_info()
    dataset = None if info is None else getattr(info.dataset, "samebits_dataset", None)
    if dataset is not None:
        object.__setattr__(info, "dataset", dataset)  # read-only by torch's own choice


def _enter(epoch: LoaderEpoch, worker: int, *more: str) -> None:
    active = PROCESS.current
    if active is not None:
        active.enter_scope(*epoch.worker_scope(worker), *more)


def _seed_worker(seed: int) -> None:
    """Seed every RNG source, except those that the user's `worker_init_fn` has touched: these go on."""
    own = WORKER.users_own
    rng.seed_sources(seed, [source for source in rng.sources() if source.name not in own])
    if "torch" not in own:
        # All of it, as torch itself does: `torch.initial_seed()` is `get_worker_info().seed` in a worker.
        sys.modules["torch"].default_generator.manual_seed(seed)


def _states() -> dict[str, bytes]:
    found = {}
    for source in rng.sources():
        if source.available():
            with ignored():  # one that cannot be read
                found[source.name] = bytes(source.get_state())
    return found


def _worker_info() -> Any:
    return sys.modules["torch"].utils.data.get_worker_info()
