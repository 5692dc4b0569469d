"""Write a record while the script runs: cheap for every event, and readable whenever the writer dies.

A commit reaches the operating system, not the disk (`synchronous=OFF`): a record survives the death of its
process, SIGKILL included, and not a power cut.
"""

from __future__ import annotations

import ctypes
import os
import sqlite3
import struct
import threading
import zlib
from contextlib import suppress
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeAlias

from samebits.recording.store import schema
from samebits.recording.store.creation import create, fold
from samebits.recording.store.interning import Interned

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from samebits.hooks.frames import Site
    from samebits.recording.events import RunInfo, TensorInfo

EventRow: TypeAlias = "tuple[int, int, int, int, int | None, int | None, int, int, int, int, bytes, bytes]"
"""seq, kind code, step, op, site, forward site, module, thread, arguments, layout, digests, links."""

FLUSH_ROWS = 256
FLUSH_SECONDS = 0.2
CAPTURE_PART = 64 << 20  # SQLite holds at most 1e9 bytes in one value

Stored: TypeAlias = "list[tuple[list[Any], int]]"
"""Buffers, and how many of their first items a transaction holds."""


class RecordWriter:
    """The record of one run, open for writing. Any thread may use it; a forked child's copy does nothing.

    Args:
        path: of the record; missing parent directories are made.
        info: what is known of the run so far.
        overwrite: replace an existing record.
        flush_seconds: how long an event may wait; infinite for runs whose addresses are to be the same: then
            the number of events alone decides what is allocated when.

    Attributes:
        broken: empty, or why writing stopped; what was committed before is kept.

    Raises:
        SamebitsError: `record-exists`, `record-busy` or `record-unwritable`.
    """

    def __init__(
        self,
        path: str | Path,
        info: RunInfo,
        *,
        overwrite: bool = False,
        flush_seconds: float = FLUSH_SECONDS,
    ) -> None:
        self.path = Path(os.path.abspath(path))  # resolve() would follow a symlink
        self.broken = ""
        self._flush_seconds = flush_seconds
        self._info = info
        self._new_infos: list[RunInfo] = []
        self._rows: list[EventRow] = []
        self._texts: Interned[str] = Interned()
        self._sites: Interned[Site] = Interned()
        self._tensors: Interned[TensorInfo] = Interned()
        self._layouts: Interned[tuple[TensorInfo, ...]] = Interned()
        self._text_ids = self._texts.ids
        self._lock = threading.RLock()
        self._inside = False
        self._pid = os.getpid()
        self._connection: sqlite3.Connection | None = create(self.path, info, overwrite=overwrite)
        # A forked child that dropped its copy would close the file for SQLite: fold and delete the parent's
        # log. So nothing but close() ever ends the connection.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._connection))
        self._deadline = monotonic() + self._flush_seconds

    def text(self, s: str) -> int:
        """Return the number that stands for a text."""
        found = self._text_ids.get(s)
        if found is None:
            found = self._texts.add(s, (schema.storable(s),), len(s) + 150)
        return found

    def site(self, s: Site) -> int:
        """Return the number that stands for a site."""
        found = self._sites.ids.get(s)
        if found is None:
            found = self._sites.add(s, (self.text(s.file), s.line, self.text(s.function)), 250)
        return found

    def layout(self, infos: tuple[TensorInfo, ...]) -> int:
        """Return the number that stands for a list of tensor descriptions."""
        found = self._layouts.ids.get(infos)
        if found is None:
            members = ",".join([str(self._tensor(info)) for info in infos])
            found = self._layouts.add(infos, (f"[{members}]",), 8 * len(infos) + 200)
        return found

    def add(self, row: EventRow) -> None:
        """Record an event; it is on its way to the file within 256 events or at the first one after 0.2 s.

        Args:
            row: see `EventRow`; numbers of texts, sites and layouts are those that this writer gave.
        """
        rows = self._rows
        rows.append(row)
        if len(rows) >= FLUSH_ROWS or monotonic() >= self._deadline:
            self._commit(self._write, wait=False)

    def capture(self, seq: int, position: int, data: bytes) -> None:
        """Store the contents of a tensor.

        Args:
            seq: of its event.
            position: in that event's layout.
            data: a safetensors file.
        """
        self.capture_all([(seq, position, data)])

    def capture_all(self, captures: Sequence[tuple[int, int, bytes]]) -> None:
        """Store the contents of several tensors, each as the arguments of `capture`."""

        def write(connection: sqlite3.Connection) -> Stored:
            for seq, position, data in captures:
                for start in range(0, max(len(data), 1), CAPTURE_PART):
                    part = data[start : start + CAPTURE_PART]
                    row = (seq, position, zlib.crc32(part), part)
                    connection.execute(schema.insert("capture", "seq, position, checksum, data"), row)
            return []

        self._commit(write)

    def update(self, **fields: Any) -> None:
        """Replace fields of the run's `RunInfo`, at once."""
        self._info = replace(self._info, **fields)
        self._new_infos.append(self._info)
        self.flush()

    def flush(self) -> None:
        """Commit what is buffered."""
        self._commit(self._write)

    def close(self) -> None:
        """Commit what is buffered and leave a single file."""
        self.flush()
        if self._pid != os.getpid():
            return
        with self._lock:
            if self._connection is None or self._inside:
                return
            connection, self._connection = self._connection, None
            try:
                fold(connection)
            except sqlite3.Error as error:
                self._break(error)
            finally:
                ctypes.pythonapi.Py_DecRef(ctypes.py_object(connection))

    def _tensor(self, info: TensorInfo) -> int:
        found = self._tensors.ids.get(info)
        if found is None:
            numbers = self.text(info.role), self.text(info.name), self.text(info.dtype)
            shape = ",".join(map(str, info.shape))
            found = self._tensors.add(info, (*numbers, f"[{shape}]"), 400)
        return found

    def _commit(self, write: Callable[[sqlite3.Connection], Stored], *, wait: bool = True) -> None:
        """Run one transaction and drop from the buffers what it stored; a failure breaks the writer only."""
        self._deadline = monotonic() + self._flush_seconds
        if self._pid != os.getpid():  # before the lock, which a fork may have copied while it was taken
            self._drop_all()
            return
        if not self._lock.acquire(blocking=wait):
            return  # another thread is writing; the next event tries again
        try:
            if self._inside:
                return  # a signal handler interrupted a commit: that one ends first
            if self._connection is None or self.broken:
                self._drop_all()
                return
            self._inside = True
            try:
                self._transaction(self._connection, write)
            finally:
                self._inside = False
        finally:
            self._lock.release()

    def _transaction(
        self, connection: sqlite3.Connection, write: Callable[[sqlite3.Connection], Stored]
    ) -> None:
        try:
            connection.execute("BEGIN")
            stored = write(connection)
            connection.execute("COMMIT")
            for buffer, count in stored:
                del buffer[:count]
        except (sqlite3.Error, struct.error, ArithmeticError, TypeError, ValueError, MemoryError) as error:
            self._break(error)
        finally:
            # After an interrupt the buffers still hold what was rolled back, or even what was committed:
            # writing a row twice leaves it as it is.
            if connection.in_transaction:
                with suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")

    def _write(self, connection: sqlite3.Connection) -> Stored:
        """Write what is buffered. Events are taken first: what they refer to was interned before them."""
        buffers: list[list[Any]] = [self._rows, self._layouts.pending, self._tensors.pending]
        buffers += [self._sites.pending, self._texts.pending, self._new_infos]
        events, layouts, tensors, sites, texts, infos = taken = [list(buffer) for buffer in buffers]
        for statement, rows in (
            (_INSERT_TEXT, texts),
            (_INSERT_SITE, sites),
            (_INSERT_TENSOR, tensors),
            (_INSERT_LAYOUT, layouts),
        ):
            if rows:
                connection.executemany(statement, rows)
        if events:
            connection.execute(_INSERT_EVENTS, pack(events))
        if infos:
            schema.write_info(connection, infos[-1])
        return [(buffer, len(items)) for buffer, items in zip(buffers, taken, strict=True)]

    def _break(self, error: Exception) -> None:
        if not self.broken:
            self.broken = (
                f"{schema.shown(self.path)} could not be written any further ({error}):"
                " the record ends at the last event before that"
            )
        self._drop_all()

    def _drop_all(self) -> None:
        self._rows.clear()
        self._new_infos.clear()
        for table in (self._texts, self._sites, self._tensors, self._layouts):
            table.pending.clear()


_INSERT_TEXT = schema.insert("text", "id, value")
_INSERT_SITE = schema.insert("site", "id, file, line, function")
_INSERT_TENSOR = schema.insert("tensor", "id, role, name, dtype, shape")
_INSERT_LAYOUT = schema.insert("layout", "id, tensors")
_INSERT_EVENTS = schema.insert("event", schema.EVENT_COLUMNS)


def pack(events: Sequence[EventRow]) -> tuple[Any, ...]:
    """Return the row of table `event` that holds these events.

    Many events share a row because a row costs SQLite 2 microseconds, and an event must cost less than one.

    Args:
        events: any number of them but none; threads may have added them slightly out of order.
    """
    ordered = sorted(events, key=itemgetter(0))
    heads = _pack_heads(ordered)
    digests = b"".join([event[10] for event in ordered])
    links = b"".join([event[11] for event in ordered])
    steps = [event[2] for event in ordered]
    checksum = schema.checksum(heads, digests, links)
    return ordered[0][0], ordered[-1][0], min(steps), max(steps), checksum, heads, digests, links


def _pack_heads(events: Sequence[EventRow]) -> bytes:
    pack_head, none = schema.HEAD.pack, schema.NO_SITE
    packed = []
    for seq, kind, step, op, site, forward_site, module, thread, arguments, layout, _, links in events:
        place = none if site is None else site
        forward = none if forward_site is None else forward_site
        packed.append(
            pack_head(seq, step, op, place, forward, module, thread, arguments, layout, kind, links != b"")
        )
    return b"".join(packed)
