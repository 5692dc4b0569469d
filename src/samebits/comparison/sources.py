"""What comparison asks of a record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from samebits.recording.events import Event, RunInfo


class Record(Protocol):
    """A record that can be read: `samebits.recording.store.RecordReader`, or a list of events in a test."""

    @property
    def info(self) -> RunInfo:
        """What is known of the run as a whole."""
        ...

    def events(
        self, kinds: Sequence[str] = (), first_step: int | None = None, last_step: int | None = None
    ) -> Iterator[Event]:
        """Events in order, of some kinds and steps."""
        ...

    def event(self, seq: int) -> Event:
        """One event; raises `SamebitsError` or `LookupError` when there is none."""
        ...
