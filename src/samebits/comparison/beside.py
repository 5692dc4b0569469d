"""Values of threads that make no steps: in which step such a thread gives one is chance.

A thread that reads samples ahead of the training loop reads values out while other steps run in each run.
That the values of one step differ shows nothing then; the runs differ where its values as a whole do.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import cached_property
from typing import TYPE_CHECKING

from samebits.comparison.tables import key_of

if TYPE_CHECKING:
    from samebits.comparison.sources import Record
    from samebits.comparison.steps import Step
    from samebits.comparison.tables import Column, Key

    ByThread = dict[str, Counter[tuple[bytes, ...]]]

_KINDS = ("batch", "read", "save")


class ValuesBeside:
    """Tells which differences within a step are those of the moment only.

    Args:
        a: the first record.
        b: the second.
    """

    def __init__(self, a: Record, b: Record) -> None:
        self._records = a, b
        self._whole = a.info.status == b.info.status == "finished"
        self._known: dict[Key, bool] = {}

    def only_moved(self, key: Key, columns: tuple[Column, Column], steps: tuple[Step, Step]) -> bool:
        """Whether values of one site that differ in a step are the same over the whole of both runs.

        Args:
            key: of the site.
            columns: its values in that step of each run.
            steps: the step of each run.
        """
        stepping = (steps[0].threads | steps[1].threads) or {""}
        if key[0] not in _KINDS or columns[0].threads | columns[1].threads <= stepping:
            return False
        if key not in self._known:
            self._known[key] = self._same(key)
        return self._known[key]

    def _same(self, key: Key) -> bool:
        ours, theirs = (log.get(key, {}) for log in self._values)
        if self._whole:
            return _total(ours) == _total(theirs)
        # Runs that were ended early have left each thread where it was, in one run further than in the other.
        common = ours.keys() & theirs.keys()
        rest = (_total({name: log[name] for name in log.keys() - common}) for log in (ours, theirs))
        return _hold(*rest) and all(_hold(ours[name], theirs[name]) for name in common)

    @cached_property
    def _values(self) -> list[dict[Key, ByThread]]:
        found: list[dict[Key, ByThread]] = []
        for record in self._records:
            log: dict[Key, ByThread] = defaultdict(lambda: defaultdict(Counter))
            for event in record.events(_KINDS):
                log[key_of(event)][event.thread][event.digests] += 1
            found.append(log)
        return found


def _total(threads: ByThread) -> Counter[tuple[bytes, ...]]:
    return sum(threads.values(), start=Counter())


def _hold(a: Counter[tuple[bytes, ...]], b: Counter[tuple[bytes, ...]]) -> bool:
    """Whether all values of one are among those of the other."""
    return a <= b or b <= a
