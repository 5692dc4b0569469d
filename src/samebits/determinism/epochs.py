"""Which loader it is, and which iteration of it: the keys that all seeds of data loading follow from."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

from samebits.determinism.process import acting, required, thread_name
from samebits.determinism.seeds import derive, fit

if TYPE_CHECKING:
    from collections.abc import Callable

    from samebits.determinism.process import Active

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
