"""Workers of DataLoaders: what happens inside them, and which iteration of which loader they serve."""

from __future__ import annotations

import sys
import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

from samebits._runtime.interruptions import ignored
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
        scope: the part of the run that this process is.
        loader: how many loaders were iterated before it was, for the first time; in threads other than the
            main thread, the name of the thread before that.
        number: how often it was iterated before.
        torch_seed: the seed of torch's default generator: the run seed, or what the script chose by
            `torch.manual_seed`. So the script's own seed decides the order, as without control, while
            draws from the generator do not.
        samples: the seed that all ranks share, and what `torch_seed` is when the script has not chosen it.
    """

    seed: int
    scope: Keys
    loader: Keys
    number: int
    torch_seed: int
    samples: tuple[int, int] = (0, 0)

    def seed_for(self, *keys: int | str) -> int:
        """A seed of 64 bits for a part of the iteration."""
        return derive(self.seed, "loader", *self.loader, self.number, self.torch_seed, *keys)

    @property
    def base_seed(self) -> int:
        """Worker `i` gets this plus `i`, as torch documents it; it stays below 2**63, as torch's does."""
        return self.seed_for("workers") >> 2

    @property
    def samples_seed(self) -> int:
        """The seed of the keys of this loader's samples, the same in all ranks and epochs."""
        shared, unchosen = self.samples
        chosen = () if self.torch_seed == unchosen else (self.torch_seed,)
        return derive(shared, "loader samples", *self.loader, *chosen)

    def worker_scope(self, worker: int) -> Keys:
        """The part of the run that a worker is during the iteration."""
        return (*self.scope, "loader", *self.loader, "epoch", self.number, "worker", worker)


class EpochId(NamedTuple):
    """Which epoch of which loader, as it travels with the indices.

    Args:
        seed: of the loader: of the run, the loader's number and the script's own seed.
        number: of the epoch.
    """

    seed: int
    number: int


class _Entry(NamedTuple):
    loader: Callable[[], Any]
    run: tuple[int, Keys]
    key: Keys


class LoaderLedger:
    """Knows the loaders of this process by identity.

    Loaders are not changed, need not be hashable, and are not kept alive. Where the run seed or the scope is
    another one, as in a process that was forked while a loader was known, loaders are numbered anew. There is
    no lock, which a fork could copy while it is held: each step is one atomic operation.

    Args:
        active: counts, where no activation inside of it does.
    """

    def __init__(self, active: Active) -> None:
        self._active = active
        self._entries: dict[int, _Entry] = {}

    def begin(self, loader: Any, torch_seed: int) -> LoaderEpoch | None:
        """The iteration of a loader that begins now; None when there is no run seed."""
        active = acting(self._active)
        if active.seed is None:
            return None
        run = (active.seed, active.scope)
        entry = self._entries.get(id(loader))
        if entry is None or entry.loader() is not loader or entry.run != run:
            entry = self._enter(loader, run, active)
        number = active.number("epoch", *entry.key)
        samples = (required(active.shared_seed), fit(required(active.source_seed), "torch"))
        return LoaderEpoch(*run, entry.key, number, torch_seed, samples)

    def _enter(self, loader: Any, run: tuple[int, Keys], active: Active) -> _Entry:
        for identity, known in list(self._entries.items()):
            if known.loader() is None:
                self._entries.pop(identity, None)
        name = thread_name()
        key: Keys = (*((name,) if name else ()), active.number("loader"))
        entry = _Entry(_reference(loader), run, key)
        self._entries[id(loader)] = entry
        return entry


def _reference(loader: Any) -> Callable[[], Any]:
    try:
        return weakref.ref(loader)
    except TypeError:  # a class of the user's own with __slots__
        return lambda: loader


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
    states.seed_sources(seed, [source for source in states.sources() if source.name not in own])
    if "torch" not in own:
        # All of it, as torch itself does: `torch.initial_seed()` is `get_worker_info().seed` in a worker.
        sys.modules["torch"].default_generator.manual_seed(seed)


def _states() -> dict[str, bytes]:
    found = {}
    for source in states.sources():
        if source.available():
            with ignored():  # one that cannot be read
                found[source.name] = bytes(source.get_state())
    return found


def _worker_info() -> Any:
    return sys.modules["torch"].utils.data.get_worker_info()
