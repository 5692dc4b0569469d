"""Which loader it is, and which iteration of it: the keys that all seeds of data loading follow from."""

from __future__ import annotations

import itertools
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from samebits.determinism.process import required, thread_name
from samebits.determinism.seeds import derive

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from samebits.determinism.process import Active

Keys = tuple["int | str", ...]


@dataclass(frozen=True, slots=True)
class LoaderEpoch:
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
    """

    seed: int
    scope: Keys
    loader: Keys
    number: int
    torch_seed: int

    def seed_for(self, *keys: int | str) -> int:
        """A seed of 64 bits for a part of the iteration."""
        return derive(self.seed, "loader", *self.loader, self.number, self.torch_seed, *keys)

    @property
    def base_seed(self) -> int:
        """Worker `i` gets this plus `i`, as torch documents it; it stays below 2**63, as torch's does."""
        return self.seed_for("workers") >> 2

    def worker_scope(self, worker: int) -> Keys:
        """The part of the run that a worker is during the iteration."""
        return (*self.scope, "loader", *self.loader, "epoch", self.number, "worker", worker)


@dataclass(frozen=True, slots=True)
class _Entry:
    loader: Callable[[], Any]
    scope: Keys
    key: Keys
    numbers: Iterator[int]


class LoaderLedger:
    """Knows the loaders of this process by identity and counts their iterations.

    Loaders are not changed, need not be hashable, and are not kept alive. A process that is forked while a
    loader is known has another scope and numbers its loaders anew. There is no lock, which a fork could copy
    while it is held: each step is one atomic operation.
    """

    def __init__(self, active: Active) -> None:
        self._active = active
        self._entries: dict[int, _Entry] = {}

    def begin(self, loader: Any, torch_seed: int) -> LoaderEpoch:
        """The iteration of a loader that begins now."""
        scope = self._active.scope
        entry = self._entries.get(id(loader))
        if entry is None or entry.loader() is not loader or entry.scope != scope:
            entry = self._enter(loader, scope)
        return LoaderEpoch(required(self._active.seed), scope, entry.key, next(entry.numbers), torch_seed)

    def _enter(self, loader: Any, scope: Keys) -> _Entry:
        for identity, known in list(self._entries.items()):
            if known.loader() is None:
                self._entries.pop(identity, None)
        name = thread_name()
        key: Keys = (*((name,) if name else ()), self._active.number("loader"))
        entry = _Entry(_reference(loader), scope, key, itertools.count())
        self._entries[id(loader)] = entry
        return entry


def _reference(loader: Any) -> Callable[[], Any]:
    try:
        return weakref.ref(loader)
    except TypeError:  # a class of the user's own with __slots__
        return lambda: loader
