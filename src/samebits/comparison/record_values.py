"""The elements of tensors that a record keeps: of taps, and of the state with `run --values`."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Protocol

from samebits.comparison.lookup import Record
from samebits.recording.kept_values import Kept, unpack

if TYPE_CHECKING:
    from samebits.records.events import Event, TensorInfo

_MOST_RECENT = 64  # tensors whose elements stay in memory, of each record


class RecordWithValues(Record, Protocol):
    """A record whose kept values can be read: `samebits.records.RecordReader`."""

    def captured(self) -> dict[int, frozenset[int]]:
        """Return the positions of the tensors whose values are kept, by event."""
        ...

    def captures(self, seq: int) -> dict[int, bytes]:
        """Return what is kept of an event, as safetensors files, by position in its layout."""
        ...


class RecordValues:
    """The kept values of a record. Those of the last event stay: it may hold all parameters of a model.

    Args:
        record: the record.
    """

    def __init__(self, record: RecordWithValues) -> None:
        self.record = record
        self._seq = -1
        self._captures: dict[int, bytes] = {}
        self._recent: OrderedDict[tuple[int, int], Kept | None] = OrderedDict()
        self._captured = record.captured()
        self._homes: dict[bytes, tuple[int, int]] = {}

    @property
    def noted(self) -> bool:
        """Whether an event that was noted has values."""
        return bool(self._homes)

    def note(self, event: Event) -> None:
        """Note the tensors of an event whose values are kept: others with the same digest have the same."""
        for position in self._captured.get(event.seq, ()):
            if position < len(event.digests):
                self._homes.setdefault(event.digests[position], (event.seq, position))

    def of(self, place: tuple[int, int], digest: bytes, info: TensorInfo) -> Kept | None:
        """Return what is kept of a tensor; None if nothing is.

        Args:
            place: the number of its event, and its position there.
            digest: of the tensor.
            info: its dtype and shape.
        """
        home = self._homes.get(digest, place)
        if home not in self._recent:
            if self._seq != home[0]:
                self._seq, self._captures = home[0], self.record.captures(home[0])
            data = self._captures.get(home[1])
            self._recent[home] = None if data is None else unpack(data, info)
            if len(self._recent) > _MOST_RECENT:
                self._recent.popitem(last=False)
        return self._recent[home]
