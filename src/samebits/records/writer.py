"""Writes a record: events are packed in rows, and a value that repeats is stored once."""

from __future__ import annotations

import itertools
import os
import struct
import threading
import zlib
from collections.abc import Hashable
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, Generic, TypeAlias, TypeVar

from samebits._runtime.frames import pass_on
from samebits._text.masking import Masker
from samebits.digest.pending import is_pending, read
from samebits.errors import SamebitsError
from samebits.records import _schema
from samebits.records.creation import create, fold, masked_info
from samebits.records.log import TRANSIENT, frame

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from samebits._runtime.frames import Site
    from samebits.digest.pending import Digests
    from samebits.records.events import RunInfo, TensorInfo

Key = TypeVar("Key", bound=Hashable)

REMEMBERED_BYTES = 6_000_000


class Interned(Generic[Key]):
    """The numbers of the values of one table, in bounded memory.

    When the memory is full, all values are forgotten: a value that comes again is written again under a new
    number, which readers treat like the old one. Threads that meet a new value at the same moment do the
    same, so no lock is needed.

    Attributes:
        ids: the numbers of the remembered values.
        pending: rows not yet written, number first.
    """

    def __init__(self) -> None:
        self.ids: dict[Key, int] = {}
        self.pending: list[tuple[Any, ...]] = []
        self._numbers = itertools.count()
        self._free_bytes = REMEMBERED_BYTES

    def add(self, key: Key, row: tuple[Any, ...], size: int) -> int:
        """Return a new number for a value.

        Args:
            key: the value.
            row: its columns, without the number.
            size: bytes of memory that remembering it takes, approximately.
        """
        if self._free_bytes < size:
            self.ids.clear()
            self._free_bytes = REMEMBERED_BYTES
        self._free_bytes -= size
        number = next(self._numbers)
        self.pending.append((number, *row))  # before it is known: an event may refer to it at once
        self.ids[key] = number
        return number


EventRow: TypeAlias = "tuple[int, int, int, int, int | None, int | None, int, int, int, int, Digests, bytes]"
"""seq, kind code, step, op, site, forward site, module, thread, arguments, layout, digests, links."""
_DIGESTS: Final = 10  # in a row

FLUSH_ROWS = 256
FLUSH_SECONDS = 0.2
CAPTURE_PART = 64 << 20  # SQLite holds at most 1e9 bytes in one value
_EVENT_BYTES = 32 << 20  # in one row
_MOST_WAITING = 20_000  # rows that wait while no file can be opened

_get_pid = os.getpid  # the script may replace it


class RecordWriter:
    """The record of one run, open for writing. Any thread may use it; a forked child's copy does nothing.

    Args:
        path: of the record, in a folder that exists.
        info: the facts of the run so far.
        overwrite: replace an existing record.
        masker: masks secrets in whatever is written; by default those in the command and the environment.
        flush_seconds: how long an event may wait; infinite for runs that must have the same addresses: then
            only the number of events decides what is allocated when.

    Attributes:
        broken: empty, or why writing stopped; earlier commits stay in the file.
        when_lost: called with the error where a GPU failed before it gave a digest: its event is left out.

    Raises:
        SamebitsError: `record-exists`, `record-busy` or `record-unwritable`.
    """

    def __init__(
        self,
        path: str | Path,
        info: RunInfo,
        *,
        overwrite: bool = False,
        masker: Masker | None = None,
        flush_seconds: float = FLUSH_SECONDS,
    ) -> None:
        self.path = Path(os.path.abspath(path))  # resolve() would follow a symlink
        self.broken = ""
        self.when_lost: Callable[[Exception], None] = lambda _: None
        self._flush_seconds = flush_seconds
        self._masker = masker or Masker(info.command, os.environ)
        self._info = masked_info(info, self._masker)
        self._new_infos: list[RunInfo] = []
        self._rows: list[EventRow] = []
        self._texts: Interned[str] = Interned()
        self._sites: Interned[Site] = Interned()
        self._tensors: Interned[TensorInfo] = Interned()
        self._layouts: Interned[tuple[TensorInfo, ...]] = Interned()
        self._text_ids = self._texts.ids
        self._lock = threading.RLock()
        self._inside = False
        self._closed = False
        self._pid = _get_pid()
        self._captures = itertools.count()
        self._log = create(self.path, self._info, overwrite=overwrite)
        self._deadline = monotonic() + self._flush_seconds

    def text(self, s: str) -> int:
        """Return the number that stands for a text."""
        number = self._text_ids.get(s)
        if number is None:
            number = self._texts.add(s, (_schema.storable(self._masker.text(s)),), len(s) + 150)
        return number

    def site(self, s: Site) -> int:
        """Return the number that stands for a site."""
        number = self._sites.ids.get(s)
        if number is None:
            number = self._sites.add(s, (self.text(s.file), s.line, self.text(s.function)), 250)
        return number

    def layout(self, infos: tuple[TensorInfo, ...]) -> int:
        """Return the number that stands for a list of tensor descriptions."""
        number = self._layouts.ids.get(infos)
        if number is None:
            members = ",".join([str(self._tensor(info)) for info in infos])
            number = self._layouts.add(infos, (f"[{members}]",), 8 * len(infos) + 200)
        return number

    def add(self, row: EventRow) -> None:
        """Record an event; it is written after at most 256 events, or with the first event after 0.2 s.

        Args:
            row: see `EventRow`; this writer gave the numbers of its texts, sites and layouts.
        """
        rows = self._rows
        rows.append(row)
        if len(rows) >= FLUSH_ROWS or monotonic() >= self._deadline:
            self._commit(wait=False)

    def capture(self, tensors: Sequence[tuple[int, int, bytes]]) -> None:
        """Store the contents of tensors.

        Args:
            tensors: for each, the `seq` of its event, its position in that event's layout, and a safetensors
                file.
        """
        rows = [
            (next(self._captures), seq, position, zlib.crc32(part), part)
            for seq, position, data in tensors
            for start in range(0, max(len(data), 1), CAPTURE_PART)
            for part in (data[start : start + CAPTURE_PART],)
        ]
        self._commit(rows)

    def update(self, **fields: Any) -> None:
        """Replace fields of the run's `RunInfo` and write it at once."""
        self._info = masked_info(replace(self._info, **fields), self._masker)
        self._new_infos.append(self._info)
        self.flush()

    def flush(self) -> None:
        """Commit the buffers."""
        self._commit()

    def close(self, *, single: bool = True) -> None:
        """Commit the buffers, and write nothing more.

        Args:
            single: fold the log into the record, so that a single file is left. This holds descriptors for a
                while: where threads of the script may still run, leave it to the parent process.
        """
        if self._closed or self._pid != _get_pid() or self._inside:
            return
        self._commit(last=True)
        self._closed = True
        if single and not self.broken:
            try:
                fold(self.path)
            except SamebitsError as error:
                self._break(error)

    def _tensor(self, info: TensorInfo) -> int:
        number = self._tensors.ids.get(info)
        if number is None:
            numbers = self.text(str(info.role)), self.text(info.name), self.text(info.dtype)
            shape = ",".join(map(str, info.shape))
            number = self._tensors.add(info, (*numbers, f"[{shape}]"), 400)
        return number

    def _commit(
        self, captures: Sequence[tuple[Any, ...]] = (), *, last: bool = False, wait: bool = True
    ) -> None:
        """Append the buffers to the log; a failure breaks only the writer."""
        self._deadline = monotonic() + self._flush_seconds
        if self._pid != _get_pid():  # before the lock: a fork may have copied it while it was held
            self._drop_all()
            return
        if not self._lock.acquire(blocking=wait):
            return  # another thread is writing; the next event tries again
        try:
            if self._inside:
                return  # a signal handler interrupted a commit: that one ends first
            if self._closed or self.broken:
                self._drop_all()
                return
            self._inside = True
            try:
                self._write(captures, last=last)
            finally:
                self._inside = False
        finally:
            self._lock.release()

    def _write(self, captures: Sequence[tuple[Any, ...]], *, last: bool) -> None:
        """Write the buffers. Events are copied first: the values they refer to were interned before them.

        After an interrupt the buffers may still hold written rows: writing a row twice changes nothing.
        """
        buffers: list[list[Any]] = [self._rows, self._layouts.pending, self._tensors.pending]
        buffers += [self._sites.pending, self._texts.pending, self._new_infos]
        taken = [list(buffer) for buffer in buffers]
        _, layouts, tensors, sites, texts, infos = taken
        try:
            if not last:
                taken[0] = list(itertools.takewhile(_can_be_read, taken[0]))
            events = [known for event in taken[0] if (known := self._read(event)) is not None]
            packed = [pack(part) for part in _parts(events)]
            run = [_schema.info_row(info) for info in infos[-1:]]
            named = {"text": texts, "site": sites, "tensor": tensors, "layout": layouts}
            groups = [{**named, "event": packed[:1], "run": run}, *({"event": [row]} for row in packed[1:])]
            for rows in (*groups, *({"capture": [row]} for row in captures)):
                self._log.append(frame(rows))
            if last:
                self._log.append(frame({}, closed=True))
        except OSError as error:
            pass_on(error)
            if error.errno not in TRANSIENT or last or len(taken[0]) > _MOST_WAITING:
                self._break(error)
            return
        except (struct.error, ArithmeticError, LookupError, TypeError, ValueError, MemoryError) as error:
            pass_on(error)
            self._break(error)
            return
        for buffer, items in zip(buffers, taken, strict=True):
            del buffer[: len(items)]

    def _read(self, event: EventRow) -> EventRow | None:
        """Return an event whose digests are there; None for one whose digests are lost."""
        digests = event[_DIGESTS]
        if not is_pending(digests):
            return event
        try:
            found = digests.read()
        except Exception as error:  # noqa: BLE001 - of the device; the script meets it too
            pass_on(error)
            self.when_lost(error)
            return None
        return (*event[:_DIGESTS], found, *event[_DIGESTS + 1 :])  # type: ignore[return-value]

    def _break(self, error: Exception) -> None:
        if not self.broken:
            self.broken = (
                f"{_schema.shown(self.path)} could not be written any further ({_schema.reason_of(error)}):"
                " the record ends with the last event before that"
            )
        self._drop_all()

    def _drop_all(self) -> None:
        self._rows.clear()
        self._new_infos.clear()
        for table in (self._texts, self._sites, self._tensors, self._layouts):
            table.pending.clear()


def _can_be_read(event: EventRow) -> bool:
    """Tell whether the digests of an event may be waited for now."""
    digests = event[_DIGESTS]
    return not is_pending(digests) or digests.can_wait()


def _parts(events: Sequence[EventRow]) -> Iterator[Sequence[EventRow]]:
    """Yield the events in groups, each of which fits into one row."""
    start = size = 0
    for number, event in enumerate(events):
        size += len(event[_DIGESTS]) + len(event[11])
        if number > start and (size > _EVENT_BYTES or number - start == _schema.MOST_EVENTS):
            yield events[start:number]
            start, size = number, len(event[_DIGESTS]) + len(event[11])
    if events:
        yield events[start:]


def pack(events: Sequence[EventRow]) -> tuple[Any, ...]:
    """Return the row of table `event` that holds these events.

    Many events share a row because a row costs SQLite 2 microseconds, and an event must cost less than one.

    Args:
        events: at least one, whose digests are there; threads may have added them slightly out of order.
    """
    ordered = sorted(events, key=itemgetter(0))
    heads = _pack_heads(ordered)
    digests = b"".join([read(event[_DIGESTS]) for event in ordered])
    links = b"".join([event[11] for event in ordered])
    steps = [event[2] for event in ordered]
    checksum = _schema.checksum(heads, digests, links)
    return ordered[0][0], ordered[-1][0], min(steps), max(steps), checksum, heads, digests, links


def _pack_heads(events: Sequence[EventRow]) -> bytes:
    pack_head, none = _schema.HEAD.pack, _schema.NO_SITE
    packed = []
    for seq, kind, step, op, site, forward_site, module, thread, arguments, layout, _, links in events:
        own = none if site is None else site
        forward = none if forward_site is None else forward_site
        packed.append(
            pack_head(seq, step, op, own, forward, module, thread, arguments, layout, kind, links != b"")
        )
    return b"".join(packed)
