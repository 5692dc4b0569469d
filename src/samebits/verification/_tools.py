"""The functions that verification uses of the packages below it, together so that tests can replace them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from samebits.comparison.draw_pairs import draws_before
from samebits.comparison.origin import find_origins
from samebits.comparison.verdict import judge
from samebits.records.kinds import EventKind
from samebits.records.reader import RecordReader
from samebits.verification.runs import run_jobs

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence
    from contextlib import AbstractContextManager

    from samebits.causes import Cause
    from samebits.comparison.lookup import Record
    from samebits.comparison.results import Comparison, OriginSearch, Source
    from samebits.records.events import Event, RunInfo
    from samebits.verification.series import RunJobs


class OpenRecord(Protocol):
    """**Protocol:** a record that is open, as `RecordReader`."""

    @property
    def info(self) -> RunInfo:
        """The facts about the run as a whole."""
        ...

    def events(
        self, kinds: Sequence[EventKind] = (), first_step: int | None = None, last_step: int | None = None
    ) -> Iterator[Event]:
        """Yield events in order."""
        ...

    def event(self, seq: int) -> Event:
        """Return one event."""
        ...

    def captures(self, seq: int) -> dict[int, bytes]:
        """Return the contents of the tensors of an event, by position."""
        ...

    def captured(self) -> dict[int, frozenset[int]]:
        """Return the positions of the captured tensors, by event."""
        ...


class Judge(Protocol):
    """**Protocol:** `samebits.comparison.judge`."""

    def __call__(self, a: Record, b: Record, excluded: Collection[str] = ()) -> Comparison:
        """Return the verdict over two records."""
        ...


class FindOrigins(Protocol):
    """**Protocol:** `samebits.comparison.find_origins`."""

    def __call__(
        self,
        a: Record,
        b: Record,
        excluded: Collection[str] = (),
        explained: Collection[tuple[Cause, str, int]] = (),
        until: float | None = None,
    ) -> OriginSearch:
        """Return where differences came in."""
        ...


class DrawsBefore(Protocol):
    """**Protocol:** `samebits.comparison.draw_pairs.draws_before`."""

    def __call__(self, a: Record, b: Record, excluded: Collection[str] = ()) -> tuple[Source, ...]:
        """Return the sources that gave other values before the runs diverged."""
        ...


@dataclass(frozen=True)
class Tools:
    """The functions by which runs are made and compared.

    Args:
        run_jobs: runs the script.
        open_record: opens a record for reading.
        judge: the verdict over two records.
        find_origins: where differences came in, from two op-level records.
        draws_before: which draws differ before the runs part, from records of any level.
    """

    run_jobs: RunJobs = run_jobs
    open_record: Callable[[str], AbstractContextManager[OpenRecord]] = RecordReader
    judge: Judge = judge
    find_origins: FindOrigins = find_origins
    draws_before: DrawsBefore = draws_before


class Counted:
    """A record that counts the tensors that one walk over all of its steps reads.

    Args:
        record: the record.
    """

    def __init__(self, record: OpenRecord) -> None:
        self._record = record
        self.n_values = 0
        self.kinds: set[EventKind] = set()

    @property
    def info(self) -> RunInfo:
        """As the record's."""
        return self._record.info

    def events(
        self, kinds: Sequence[EventKind] = (), first_step: int | None = None, last_step: int | None = None
    ) -> Iterator[Event]:
        """As the record's."""
        n_values = 0
        for event in self._record.events(kinds, first_step, last_step):
            n_values += len(event.digests)
            self.kinds.add(event.kind)
            yield event
        if EventKind.OP not in kinds:
            self.n_values = max(self.n_values, n_values)

    def event(self, seq: int) -> Event:
        """As the record's."""
        return self._record.event(seq)
