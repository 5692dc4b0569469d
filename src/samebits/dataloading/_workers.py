"""Control of the workers of DataLoaders, and the seeds of each iteration of a loader."""

from __future__ import annotations

import sys
import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

from samebits._runtime.frames import ignored
from samebits._torch.loaders import set_worker_seed
from samebits.rng import states
from samebits.rng.active import PROCESS, acting, required, thread_name
from samebits.rng.seeds import derive, fit

if TYPE_CHECKING:
    from collections.abc import Callable

    from samebits.rng.active import Active

Keys = tuple["int | str", ...]


class LoaderEpoch(NamedTuple):
    """One iteration of one loader.

    Args:
        seed: the run seed.
        scope: names this process within the run.
        loader: the number of loaders that were first iterated before it; in threads other than the main
            thread, preceded by the name of the thread.
        number: the number of its earlier iterations.
        torch_seed: the seed of torch's default generator: the run seed, or the script's choice by
            `torch.manual_seed`. So the script's own seed decides the order, as without control, while
            draws from the generator do not.
        samples: the seed that all ranks share, and the value of `torch_seed` where the script chooses none.
    """

    seed: int
    scope: Keys
    loader: Keys
    number: int
    torch_seed: int
    samples: tuple[int, int] = (0, 0)

    def seed_for(self, *keys: int | str) -> int:
        """Derive a seed of 64 bits for a part of the iteration."""
        return derive(self.seed, "loader", *self.loader, self.number, self.torch_seed, *keys)

    @property
    def base_seed(self) -> int:
        """The base of the workers' seeds: worker `i` gets this plus `i`; it is below 2**63, as torch's is."""
        return self.seed_for("workers") >> 2

    @property
    def samples_seed(self) -> int:
        """The seed of the keys of this loader's samples, the same in all ranks and epochs."""
        shared, unchosen = self.samples
        chosen = () if self.torch_seed == unchosen else (self.torch_seed,)
        return derive(shared, "loader samples", *self.loader, *chosen)

    def worker_scope(self, worker: int) -> Keys:
        """Return the scope of a worker during the iteration."""
        return (*self.scope, "loader", *self.loader, "epoch", self.number, "worker", worker)


class EpochId(NamedTuple):
    """The epoch of a loader, as it travels with the indices.

    Args:
        seed: the loader's seed, from the run seed, the loader's number and the script's own seed.
        number: the number of the epoch.
    """

    seed: int
    number: int


class _KnownLoader(NamedTuple):
    loader: Callable[[], Any]
    run: tuple[int, Keys]
    key: Keys


class LoaderLedger:
    """The loaders of this process, by identity.

    Loaders are not changed, need not be hashable, and are not kept alive. When the run seed or the scope has
    changed, as in a process that was forked while a loader was known, loaders are numbered from 0 again. No
    lock is used, because a fork could copy it while it is held: each step is one atomic operation.

    Args:
        active: counts, unless an activation inside of it does.
    """

    def __init__(self, active: Active) -> None:
        self._active = active
        self._known: dict[int, _KnownLoader] = {}

    def begin(self, loader: Any, torch_seed: int) -> LoaderEpoch | None:
        """Begin an iteration of a loader; None when there is no run seed."""
        active = acting(self._active)
        if active.seed is None:
            return None
        run = (active.seed, active.scope)
        known = self._known.get(id(loader))
        if known is None or known.loader() is not loader or known.run != run:
            known = self._add(loader, run, active)
        number = active.number("epoch", *known.key)
        samples = (required(active.shared_seed), fit(required(active.source_seed), "torch"))
        return LoaderEpoch(*run, known.key, number, torch_seed, samples)

    def _add(self, loader: Any, run: tuple[int, Keys], active: Active) -> _KnownLoader:
        for identity, other in list(self._known.items()):
            if other.loader() is None:
                self._known.pop(identity, None)
        name = thread_name()
        key: Keys = (*((name,) if name else ()), active.number("loader"))
        known = _KnownLoader(_reference(loader), run, key)
        self._known[id(loader)] = known
        return known


def _reference(loader: Any) -> Callable[[], Any]:
    try:
        return weakref.ref(loader)
    except TypeError:  # a class of the user's own with __slots__
        return lambda: loader


class WorkerState:
    """The state that a worker remembers from its start to its next epochs."""

    def __init__(self) -> None:
        self.users_own: frozenset[str] = frozenset()
        self.keyed_epoch: Any = None


# A worker process serves one iterator of one loader.
WORKER = WorkerState()


class WorkerInit(NamedTuple):
    """Replaces a loader's `worker_init_fn`: puts the worker under control, then calls the user's.

    Args:
        epoch: the iteration that the worker is started for.
        user: the loader's own `worker_init_fn`.
        reseed: seed all RNG sources; False where the user's own generator decides, and torch's seeding of
            Python, NumPy and torch stays.
    """

    epoch: LoaderEpoch
    user: Callable[[int], Any] | None
    reseed: bool

    def __call__(self, worker: int) -> None:
        """Begin in the worker; torch calls this after it has seeded the worker and before it touches data."""
        _set_keyed_epoch(self.epoch)
        _show_users_dataset()
        # A separate scope: persistent workers do not run the user's function again in later epochs.
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
    """Sent to persistent workers instead of the shared seed; its arrival begins the epoch.

    Torch tells its workers that an epoch begins by a message that holds the shared seed. Unpickling this
    gives the plain seed, so that torch's code in the worker sees nothing else.

    Args:
        epoch: the iteration that begins.
        shared_seed: the seed that torch sends.
        reseed: as in `WorkerInit`.
    """

    def __init__(self, epoch: LoaderEpoch, shared_seed: Any, *, reseed: bool) -> None:
        self.epoch, self.shared_seed, self.reseed = epoch, shared_seed, reseed

    def __reduce__(self) -> tuple[Any, ...]:
        return _begin_epoch, (self.epoch, self.shared_seed, self.reseed)


def _begin_epoch(epoch: LoaderEpoch, shared_seed: Any, reseed: bool) -> Any:  # noqa: FBT001 - from pickle
    info = _worker_info()
    if info is not None:
        _set_keyed_epoch(epoch)
        _enter(epoch, info.id)
        if reseed:
            set_worker_seed(info, epoch.base_seed + info.id)
            _seed_worker(info.seed)
    return shared_seed


def _set_keyed_epoch(epoch: LoaderEpoch) -> None:
    """Tell iterable datasets the epoch, because their elements do not bring it with them."""
    WORKER.keyed_epoch = EpochId(epoch.samples_seed, epoch.number)


def _show_users_dataset() -> None:
    """Let `get_worker_info().dataset` be the script's own where samples are keyed."""
    info = _worker_info()
    dataset = None if info is None else getattr(info.dataset, "samebits_dataset", None)
    if dataset is not None:
        object.__setattr__(info, "dataset", dataset)  # read-only by torch's own choice


def _enter(epoch: LoaderEpoch, worker: int, *more: str) -> None:
    active = PROCESS.current
    if active is not None:
        active.enter_scope(*epoch.worker_scope(worker), *more)


def _seed_worker(seed: int) -> None:
    """Seed every RNG source, except those that the user's `worker_init_fn` has touched."""
    own = WORKER.users_own
    states.seed_sources(seed, [source for source in states.sources() if source.name not in own])
    if "torch" not in own:
        # All of it, as torch itself does: `torch.initial_seed()` is `get_worker_info().seed` in a worker.
        sys.modules["torch"].default_generator.manual_seed(seed)


def _states() -> dict[str, bytes]:
    by_source = {}
    for source in states.sources():
        if source.available():
            with ignored():  # one that cannot be read
                by_source[source.name] = bytes(source.get_state())
    return by_source


def _worker_info() -> Any:
    return sys.modules["torch"].utils.data.get_worker_info()
