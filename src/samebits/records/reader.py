"""Reads a record within limits: its facts, events and values, also while it is still being written."""

from __future__ import annotations

import sqlite3
import tempfile
from contextlib import closing, contextmanager
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from samebits._text import files
from samebits.errors import SamebitsError
from samebits.records import _schema
from samebits.records._decoding import Damage, Tables, Unpacked, check_safetensors, decode_info, unpack
from samebits.records._schema import connect, harden
from samebits.records.events import END, Event, RunInfo
from samebits.records.kinds import KINDS, EventKind
from samebits.records.log import LogError, log_of, rebuild

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from types import TracebackType


class Snapshot:
    """A record that does not change while it is read.

    For a record that is being written, or whose writer died, a copy is made from its log. Logs and journals
    of SQLite are never used: samebits leaves none, and a forged one makes SQLite delete the files it names.

    Args:
        path: of the record.

    Attributes:
        size: of the file that is read, in bytes.

    Raises:
        SamebitsError: `record-missing`, `record-unreadable`, `record-foreign`, `record-version`,
            `record-damaged`.
    """

    def __init__(self, path: Path) -> None:
        self._copy: tempfile.TemporaryDirectory[str] | None = None
        try:
            self._open(path)
        except (OSError, ValueError) as error:
            self.close()
            raise _unreadable(path, error) from None
        except BaseException:
            self.close()
            raise

    def connect(self) -> sqlite3.Connection:
        """Return a read-only connection, for any thread but only one at a time."""
        connection = sqlite3.connect(self._uri, uri=True, isolation_level=None, check_same_thread=False)
        try:
            harden(connection, self.size)
        except BaseException:
            connection.close()
            raise
        return connection

    def close(self) -> None:
        """Remove the copy, if there is one."""
        if self._copy is not None:
            self._copy.cleanup()

    def _open(self, path: Path) -> None:
        _schema.check_header(path, _header(path))
        record = path.resolve()
        if self._is_rebuilt(path, log_of(record)):
            return
        header = _header(record)  # after the log: a record may be closed in between
        self.size = record.stat().st_size
        expected = _schema.promised_size(header)
        if self.size < expected:
            raise SamebitsError(
                f"{_schema.shown(path)} is damaged (found {self.size} bytes, expected {expected}):"
                " copy it again in full, or record the run again",
                slug="record-damaged",
            )
        self._uri = f"{record.as_uri()}?mode=ro&immutable=1"

    def _is_rebuilt(self, path: Path, log: Path) -> bool:
        """Build a copy from the log, if there is one, and read that: its writer may go on meanwhile."""
        if not log.is_file():
            return False
        self._copy = tempfile.TemporaryDirectory(prefix="samebits-")
        copy = Path(self._copy.name, "record")
        copy.touch()
        try:
            with closing(connect(copy)) as connection:
                if not rebuild(connection, log):
                    return False
        except FileNotFoundError:  # the log was folded into the record just now
            return False
        except (LogError, sqlite3.Error) as error:
            raise _schema.damaged(path, error) from None
        self.size = copy.stat().st_size
        self._uri = f"{copy.as_uri()}?mode=ro&immutable=1"
        return True


def is_record(path: str) -> bool:
    """Tell whether a path is that of a file that begins as a record does."""
    try:
        return Path(path).is_file() and _schema.is_record(_header(Path(path)))
    except OSError:
        return False


def _header(path: Path) -> bytes:
    with files.open_to_read(path) as file:  # a pipe would block, a device might have effects
        return file.read(100)


def _unreadable(path: Path, error: Exception) -> SamebitsError:
    shown = _schema.shown(path)
    if isinstance(error, FileNotFoundError):
        return SamebitsError(f"{shown} does not exist: give the path of a record", slug="record-missing")
    return SamebitsError(
        f"cannot read {shown} ({_schema.reason_of(error)}): give the path of a record",
        slug="record-unreadable",
    )


_BROKEN = (sqlite3.Error, Damage, ValueError, TypeError, ArithmeticError, RecursionError, MemoryError)
_TICK = 1_000_000  # steps of SQLite's virtual machine between two checks of the budget
_INTERRUPTED = "interrupted"  # SQLite's message for a query that the budget stopped
_STEP = KINDS.index(EventKind.STEP)
_READ = KINDS.index(EventKind.READ)
_RUN = f"SELECT {_schema.RUN_COLUMNS} FROM run LIMIT 2"  # noqa: S608  # our own names
_CHUNKS = f"SELECT {_schema.EVENT_COLUMNS} FROM event"  # noqa: S608  # our own names


class RecordReader:
    """A record, open for reading. The file is not changed and nothing is left beside it.

    Args:
        path: of the record; it may be in a directory that cannot be written, still being written, or left
            by a run that was killed.

    Attributes:
        info: the facts of the run; while its status is `running`, `steps` is counted from the events.

    Raises:
        SamebitsError: `record-missing`, `record-unreadable`, `record-foreign`, `record-version` or
            `record-damaged`.
    """

    info: RunInfo

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._snapshot = Snapshot(self.path)
        self._captures: dict[int, list[tuple[int, int]]] | None = None
        self._connection: sqlite3.Connection | None = None
        self._budget: _Budget
        try:
            with self._damage():
                self._check_tables()
                self._tables = Tables(self._query)
                self.info = self._read_info()
        except BaseException:
            self.close()
            raise

    def events(
        self, kinds: Sequence[EventKind] = (), first_step: int | None = None, last_step: int | None = None
    ) -> Iterator[Event]:
        """Yield events in order.

        Args:
            kinds: only these; empty for all.
            first_step: only events whose `step` is at least this.
            last_step: only events whose `step` is at most this.

        Raises:
            SamebitsError: `record-damaged`, at the first event that makes no sense.
        """
        codes = {KINDS.index(kind) for kind in kinds} or set(range(len(KINDS)))
        first = -(2**31) if first_step is None else first_step
        last = 2**31 if last_step is None else last_step
        with self._damage():
            for event in self._unpacked(first, last):
                if event.kind in codes and first <= event.step <= last:
                    yield self._tables.event(event)

    def n_steps(self) -> int:
        """Return the number of step boundaries that a comparison counts in this run.

        In a run that never trains, each value that was read counts as one.

        Raises:
            SamebitsError: `record-damaged`.
        """
        steps: set[int] = set()
        reads = 0
        with self._damage():
            for (heads,) in self._query("SELECT heads FROM event"):  # not the digests, which may be large
                if type(heads) is not bytes or len(heads) % _schema.HEAD.size:
                    raise Damage("some of its events are cut short")
                reads += heads[_schema.KIND_OFFSET :: _schema.HEAD.size].count(_READ)
                if _STEP in heads[_schema.KIND_OFFSET :: _schema.HEAD.size]:
                    steps.update(
                        head[1]
                        for head in _schema.HEAD.iter_unpack(heads)
                        if head[9] == _STEP and self._tables.texts.get(head[2]) != END
                    )
        return len(steps) or max(self.info.steps, reads)

    def event(self, seq: int) -> Event:
        """Return one event.

        Raises:
            SamebitsError: `record-no-event`, `record-damaged`.
        """
        with self._damage():
            rows = self._query(f"{_CHUNKS} WHERE first_seq <= ? AND last_seq >= ?", (seq, seq))
            for event in chain.from_iterable(unpack(row, self._tables) for row in rows):
                if event.seq == seq:
                    return self._tables.event(event)
        raise SamebitsError(
            f"{_schema.shown(self.path)} holds no event {seq}: list its events with `samebits show`",
            slug="record-no-event",
        )

    def captured(self) -> dict[int, frozenset[int]]:
        """Return the positions of the tensors that were captured, by event.

        Raises:
            SamebitsError: `record-damaged`.
        """
        with self._damage():
            return {seq: frozenset(at for _, at in rows) for seq, rows in self._capture_rows().items()}

    def captures(self, seq: int) -> dict[int, bytes]:
        """Return the captured tensors of an event, as safetensors files, by position in its layout.

        Raises:
            SamebitsError: `record-damaged`.
        """
        query = "SELECT position, checksum, data FROM capture WHERE id = ?"
        parts: dict[int, list[bytes]] = {}
        with self._damage():
            rows = chain.from_iterable(
                self._query(query, (row,)) for row, _ in self._capture_rows().get(seq, ())
            )
            for position, checksum, data in rows:
                if type(position) is not int or type(data) is not bytes:
                    raise Damage(f"a capture of event {seq} has a value of the wrong type")
                if _schema.checksum(data) != checksum:
                    raise Damage(f"a capture of event {seq} does not match its checksum")
                parts.setdefault(position, []).append(data)
            tensors = {position: b"".join(pieces) for position, pieces in parts.items()}
            for data in tensors.values():
                check_safetensors(data)
        return tensors

    def let_go(self) -> None:
        """Close the descriptor until the next query: this process may close it for another file."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def close(self) -> None:
        """Close the file, and remove the copy if there is one."""
        self.let_go()
        self._snapshot.close()

    def __enter__(self) -> RecordReader:  # noqa: PYI034  # typing.Self needs Python 3.11
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _query(self, statement: str, values: tuple[int, ...] = ()) -> Iterator[tuple[object, ...]]:
        if self._connection is None:
            self._connection = self._snapshot.connect()
            self._budget = _Budget(self._connection, self._snapshot.size)
        self._budget.reset()
        return self._bounded(self._connection.execute(statement, values))

    def _bounded(self, rows: Iterable[tuple[object, ...]]) -> Iterator[tuple[object, ...]]:
        """Yield the rows, unless they hold more than the file: forged pages can belong to many values."""
        left = self._snapshot.size
        for row in rows:
            for value in row:
                if isinstance(value, (str, bytes)):
                    left -= len(value)
            if left < 0:
                raise Damage("its values are longer together than the file")
            yield row

    def _capture_rows(self) -> dict[int, list[tuple[int, int]]]:
        """Return the rows of table `capture` by event: a query for one event would read the whole table."""
        if self._captures is None:
            by_event: dict[int, list[tuple[int, int]]] = {}
            for row, seq, position in self._query("SELECT id, seq, position FROM capture ORDER BY id"):
                if type(row) is not int or type(seq) is not int or type(position) is not int:
                    raise Damage("a capture belongs to no tensor of an event")
                by_event.setdefault(seq, []).append((row, position))
            self._captures = by_event
        return self._captures

    def _unpacked(self, first: int, last: int) -> Iterator[Unpacked]:
        """Yield events in order of seq; threads may have written them slightly out of order."""
        waiting: list[Unpacked] = []
        previous: Unpacked | None = None
        rows = self._query(
            f"{_CHUNKS} WHERE last_step >= ? AND first_step <= ? ORDER BY first_seq", (first, last)
        )
        for row in chain(rows, [None]):
            chunk = [] if row is None else unpack(row, self._tables)
            limit = chunk[0].seq if chunk else 2**63
            ready = [event for event in waiting if event.seq < limit]
            waiting = sorted([event for event in waiting if event.seq >= limit] + chunk)
            for event in ready:
                if previous is not None and event.seq <= previous.seq:
                    if event == previous:  # an interrupted writer may write an event twice
                        continue
                    raise Damage(f"event {event.seq} comes twice")
                yield event
                previous = event

    def _check_tables(self) -> None:
        """Refuse any table, index, view or trigger that samebits did not make."""
        tables = set()
        for kind, name, text in self._query("SELECT type, name, sql FROM sqlite_master"):
            if kind != "table" or _schema.TABLES.get(str(name)) != text:
                raise Damage(f"it holds the unknown {kind} {str(name)[:40]!r}")
            tables.add(name)
        missing = sorted(set(_schema.TABLES) - tables)
        if missing:
            raise Damage(f"its table {missing[0]!r} is missing")

    def _read_info(self) -> RunInfo:
        rows = list(self._query(_RUN))
        if len(rows) != 1:
            raise Damage("it does not describe exactly one run")
        return decode_info(rows[0], self._counted_steps)

    def _counted_steps(self) -> int:
        """Count the step boundaries as the killed writer would have done."""
        (last,) = next(self._query("SELECT max(last_step) FROM event"))
        if type(last) is not int:
            return 0
        final = [event for event in self._unpacked(last, last) if event.step == last]
        closed = any(event.kind == _STEP and self._tables.texts.get(event.op) != END for event in final)
        return last + closed

    @contextmanager
    def _damage(self) -> Iterator[None]:
        try:
            yield
        except _BROKEN as error:
            raise _schema.damaged(self.path, _one_line(error)) from None


class _Budget:
    """A limit that stops a query which does more work than a sound file of this size can need."""

    def __init__(self, connection: sqlite3.Connection, size: int) -> None:
        self._ticks = self._allowed = 10 + size // 50_000
        connection.set_progress_handler(self._tick, _TICK)

    def reset(self) -> None:
        self._ticks = self._allowed

    def _tick(self) -> int:
        self._ticks -= 1
        return self._ticks < 0


def _one_line(error: BaseException) -> str:
    if isinstance(error, MemoryError):  # SQLite says so of a value whose length makes no sense, too
        return "one of its values is too large to be read"
    text = " ".join((str(error) or type(error).__name__).split())
    return "its pages repeat without end" if text == _INTERRUPTED else text[:200]
