"""Watches the iterators of torch's loaders: the RNG states before each, and before its last fetches.

A trainer makes the iterator where no callback is called, and making it draws: `_base_seed`, from which the
workers' seeds follow, and the seed of `RandomSampler` (torch 2.13, `torch/utils/data/dataloader.py`,
`_BaseDataLoaderIter.__init__`, and `sampler.py`, `RandomSampler.__iter__`). Where samples are loaded in this
process, loading them may draw as well.
"""

from __future__ import annotations

import functools
import weakref
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from torch.utils.data import DataLoader

from samebits._runtime.patching import Patches
from samebits.integrations._loader_generators import restore_with, states_with
from samebits.rng.states import SourceState, save_states

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

States = tuple[SourceState, ...]
_AHEAD = 2  # batches that a trainer may hold: accelerate's loaders fetch one before they hand over the last


@dataclass(frozen=True, slots=True)
class Continuation:
    """How an epoch goes on in which a training was stopped.

    Args:
        begin: states before its iterator is made.
        skip: batches at its beginning that are fetched and not used.
        ahead: states before each fetch after these whose batch the stopped training had fetched and not used;
            None where fetching draws nothing in this process.
        now: states when the training was saved.
    """

    begin: States
    skip: int
    ahead: tuple[States | None, ...]
    now: States

    def before_fetch(self, number: int) -> States | None:
        """Return the states that belong before a fetch, counted from 0; None where they stay."""
        if number == self.skip + len(self.ahead):
            return self.now
        return self.ahead[number - self.skip] if 0 <= number - self.skip < len(self.ahead) else None


class PassFacts:
    """What was seen of one iterator of a loader.

    Attributes:
        begin: states before it was made.
        fetched: batches that it gave.
        ahead: states before each of the last of them; none where workers load.
        after: states after the last one, where an epoch goes on.
    """

    def __init__(self, begin: States) -> None:
        self.begin = begin
        self.fetched = 0
        self.ahead: deque[States] = deque(maxlen=_AHEAD)
        self.after: States | None = None


class Pass:
    """An iterator of a loader, watched.

    Args:
        inner: the iterator.
        facts: are kept up to date.
        loader: that made it.
        goes_on: how it begins, where an epoch goes on.
    """

    def __init__(self, inner: Any, facts: PassFacts, loader: Any, goes_on: Continuation | None) -> None:
        self._inner, self._facts, self._loader, self._goes_on = inner, facts, loader, goes_on

    def __iter__(self) -> Iterator[Any]:
        return self

    def __len__(self) -> int:
        return len(self._inner)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def __next__(self) -> Any:
        facts, goes_on = self._facts, self._goes_on
        states = None if goes_on is None else goes_on.before_fetch(facts.fetched)
        if states is not None:
            restore_with(states, self._loader)
        before = save_states() if self._loader.num_workers == 0 else None  # else fetching draws elsewhere
        try:
            batch = next(self._inner)
        finally:
            if goes_on is not None:  # also at the end of the data
                facts.after = save_states()
        facts.fetched += 1
        if before is not None:
            facts.ahead.append(before)
        return batch


class LoaderWatch:
    """Wraps the iterators that torch's own loaders make, from `install` to `remove`.

    Loaders of samebits make their own and are left alone.

    Attributes:
        expected: the iterator that `expect` waited for; None until it is made.
    """

    def __init__(self) -> None:
        self._patches: Patches | None = None
        self._facts: weakref.WeakKeyDictionary[Any, PassFacts] = weakref.WeakKeyDictionary()
        self._waits_for: list[tuple[Any, Continuation | None]] = []
        self.expected: PassFacts | None = None

    def install(self) -> None:
        """Begin to watch."""
        if self._patches is not None:
            return
        self._patches = Patches()
        make = DataLoader.__iter__

        @functools.wraps(make)
        def begin(loader: Any) -> Any:
            return self._begin(loader, make)

        self._patches.set(DataLoader, "__iter__", begin)

    def remove(self) -> None:
        """Stop watching."""
        if self._patches is not None:
            self._patches.restore()
        self._patches = None
        self._waits_for.clear()

    def expect(self, dataset: Any, continuation: Continuation | None = None) -> None:
        """Wait for the next iterator over a dataset.

        Args:
            dataset: the object that the loader has.
            continuation: how it is to begin, where an epoch goes on.
        """
        self._waits_for = [(dataset, continuation)]
        self.expected = None

    def latest(self, loader: Any) -> PassFacts | None:
        """Return what was seen of the last iterator of a loader; None if there was none."""
        return self._facts.get(loader)

    def _begin(self, loader: Any, make: Callable[[Any], Any]) -> Any:
        is_expected = bool(self._waits_for) and self._waits_for[0][0] is loader.dataset
        goes_on = self._waits_for.pop()[1] if is_expected else None
        if goes_on is not None:
            restore_with(goes_on.begin, loader)
        facts = self._facts[loader] = PassFacts(states_with(loader))
        if is_expected:
            self.expected = facts
        return Pass(make(loader), facts, loader, goes_on)
