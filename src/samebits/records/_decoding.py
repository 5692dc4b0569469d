"""Decodes the values of a record to events. Every value is checked: a record may come from a stranger."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from samebits._runtime.frames import Site
from samebits.records import _schema
from samebits.records._stored_notes import ForeignNotes, notes_of
from samebits.records.events import Event, Link, RunInfo, TensorInfo
from samebits.records.kinds import KINDS, Level, Role

if TYPE_CHECKING:
    from samebits.records.notes import Note

Query = Callable[[str], Iterator[tuple[Any, ...]]]

Value = TypeVar("Value")

_DIGEST = f"{_schema.DIGEST_BYTES}s"
_MAX_DIGITS = 20
_LONGEST_NAME = 4096  # of a file, a function, an op, a module, a tensor: as long as a path may be
_MOST_DIMENSIONS = 1024
_LEVELS = (Level.STEP, Level.OP)
_STATUSES = ("running", "finished", "stopped", "failed")


class Damage(Exception):  # noqa: N818  # the reader makes an error of it
    """A record is damaged; the message says how, in a few words."""


class Unpacked(NamedTuple):
    """An event as it is stored."""

    seq: int
    step: int
    op: int
    site: int
    forward_site: int
    module: int
    thread: int
    arguments: int
    layout: int
    kind: int
    has_links: int
    digests: bytes
    links: bytes


class Tables:
    """The interned values of a record, checked.

    Args:
        query: runs a statement.

    Attributes:
        texts: the texts by number.
    """

    def __init__(self, query: Query) -> None:
        self.texts: dict[int, str] = {}
        for number, value in _numbered(query("SELECT id, value FROM text ORDER BY id")):
            self.texts[number] = _schema.cut(_text(value))
        long = {number: text for number, text in self.texts.items() if len(text) > _LONGEST_NAME}
        self._names = {**self.texts, **{n: _schema.cut(text, _LONGEST_NAME) for n, text in long.items()}}
        self._sites: dict[int, Site | None] = {_schema.NO_SITE: None}
        for number, file, line, function in _numbered(
            query("SELECT id, file, line, function FROM site ORDER BY id")
        ):
            self._sites[number] = Site(self._named(file), _integer(line), self._named(function))
        tensors: dict[int, TensorInfo] = {}
        for number, role, name, dtype, shape in _numbered(
            query("SELECT id, role, name, dtype, shape FROM tensor ORDER BY id")
        ):
            texts = self._named(name), self._named(dtype)
            tensors[number] = TensorInfo(role_of(self._named(role)), *texts, _shape(shape))
        self._layouts: dict[int, tuple[TensorInfo, ...]] = {}
        for number, members in _numbered(query("SELECT id, tensors FROM layout ORDER BY id")):
            self._layouts[number] = tuple(
                [_lookup(tensors, member) for member in _naturals(load_json(members))]
            )

    def layout(self, number: int) -> tuple[TensorInfo, ...]:
        """Return a list of tensor descriptions."""
        return _lookup(self._layouts, number)

    def event(self, event: Unpacked) -> Event:
        """Return an event with its numbers replaced by what they stand for."""
        tensors = self.layout(event.layout)
        return Event(
            seq=event.seq,
            kind=KINDS[event.kind],
            step=event.step,
            op=_lookup(self._names, event.op),
            site=_lookup(self._sites, event.site),
            forward_site=_lookup(self._sites, event.forward_site),
            module=_lookup(self._names, event.module),
            thread=_lookup(self._names, event.thread),
            arguments=_lookup(self.texts, event.arguments),
            tensors=tensors,
            digests=struct.unpack(_DIGEST * len(tensors), event.digests),
            links=tuple([Link(*link) for link in _schema.LINK.iter_unpack(event.links)]),
        )

    def _named(self, number: object) -> str:
        return _lookup(self._names, _integer(number))


def unpack(row: tuple[Any, ...], tables: Tables) -> list[Unpacked]:
    """Return the events of a row of table `event`, in order.

    Raises:
        Damage: if the row does not make sense.
    """
    first, last, checksum, heads, digests, links = row[0], row[1], row[4], *row[5:]
    if not all(type(blob) is bytes for blob in (heads, digests, links)):
        raise Damage(f"the events from {first!r} have a value of the wrong type")
    if _schema.checksum(heads, digests, links) != checksum:
        raise Damage(f"the events from {first!r} do not match their checksum")
    if len(heads) > _schema.MOST_EVENTS * _schema.HEAD.size:
        raise Damage(f"the row of the events from {first!r} holds more than {_schema.MOST_EVENTS} events")
    if not heads or len(heads) % _schema.HEAD.size:
        raise Damage(f"the events from {first!r} are cut short")
    events: list[Unpacked] = []
    digest_end = link_end = 0
    for head in _schema.HEAD.iter_unpack(heads):
        digest_start, link_start = digest_end, link_end
        count = len(tables.layout(head[8]))
        digest_end += count * _schema.DIGEST_BYTES
        link_end += count * _schema.LINK.size * head[10]
        own = digests[digest_start:digest_end], links[link_start:link_end]
        event = Unpacked._make(head + own)
        _check(event, events[-1].seq if events else -1)
        events.append(event)
    if digest_end != len(digests) or link_end != len(links):
        raise Damage(f"the events from {first!r} have a wrong number of digests or links")
    if (events[0].seq, events[-1].seq) != (first, last):
        raise Damage(f"the events from {first!r} are not those that their row announces")
    return events


def decode_info(row: tuple[Any, ...], count_steps: Callable[[], int]) -> RunInfo:
    """Return the facts of a run that its record holds.

    Args:
        row: of table `run`.
        count_steps: counts the steps; called if the writer was killed before it wrote their number.

    Raises:
        Damage: if a value is of the wrong type.
    """
    _, _, command, level, status, exit_status, failure, steps, torch, *texts = row
    environment, control, notes, replay = texts
    if level not in _LEVELS or status not in _STATUSES:
        raise Damage(f"the level {level!r:.40} or the status {status!r:.40} is unknown")
    columns = (environment, control, replay)
    facts, controlled, replayed = (_schema.bounded(load_json(text)) for text in columns)
    if not all(type(value) is dict for value in (facts, controlled, replayed)):
        raise Damage("the environment, the control or the replay is not a JSON object")
    steps = _integer(steps)
    return RunInfo(
        command=_text_list(command),
        level=Level(level),
        status=status,
        exit_status=None if exit_status is None else _integer(exit_status),
        failure=_schema.cut(_text(failure)),
        steps=max(steps, count_steps()) if status == "running" else steps,
        torch=_schema.cut(_text(torch), _LONGEST_NAME),
        environment=facts,
        control=controlled,
        notes=_notes(notes),
        replay=replayed,
    )


def role_of(text: str) -> Role:
    """Return the role of a tensor; an unknown one keeps its text and equals no other."""
    try:
        return Role(text)
    except ValueError:
        unknown = str.__new__(Role, text)
        unknown._name_ = unknown._value_ = text
        return unknown


def _check(event: Unpacked, previous: int) -> None:
    if event.kind >= len(KINDS) or event.has_links > 1 or event.step < 0:
        raise Damage(f"event {event.seq} has an impossible kind or step")
    if event.seq <= previous:
        raise Damage(f"event {event.seq} comes after event {previous}")


def _numbered(rows: Iterator[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    """Yield rows whose first value must grow: a forged tree of pages can repeat rows without end."""
    previous = -1
    for row in rows:
        if type(row[0]) is not int or row[0] <= previous:
            raise Damage(f"row {row[0]!r} comes after row {previous}")
        previous = row[0]
        yield row


def _lookup(table: dict[int, Value], number: int) -> Value:
    try:
        return table[number]
    except KeyError:
        raise Damage(f"it refers to number {number}, which it does not define") from None


def _integer(value: object) -> int:
    if type(value) is not int:
        raise Damage(f"found a {type(value).__name__}, expected a whole number")
    return value


def _text(value: object) -> str:
    if type(value) is not str:
        raise Damage(f"found a {type(value).__name__}, expected text")
    return value


def _text_list(text: object) -> tuple[str, ...]:
    values = load_json(text)
    if type(values) is not list:
        raise Damage("found JSON that is not a list of texts")
    return tuple([_schema.cut(_text(value)) for value in values])


def _notes(text: object) -> tuple[Note, ...]:
    try:
        return notes_of(load_json(text), _schema.cut)
    except ForeignNotes:
        raise Damage("found JSON that is not a list of notes") from None


def _shape(text: object) -> tuple[int, ...]:
    sizes = _naturals(load_json(text))
    if len(sizes) > _MOST_DIMENSIONS:
        raise Damage(f"a tensor has {len(sizes)} dimensions")
    return sizes


def _naturals(values: object) -> tuple[int, ...]:
    """Return a JSON list of sizes or numbers as a tuple."""
    if type(values) is not list or not all(type(value) is int and 0 <= value < 2**63 for value in values):
        raise Damage("found JSON that is not a list of sizes or numbers")
    return tuple(values)


def load_json(text: object) -> Any:
    """Return the value of a JSON text.

    Raises:
        Damage: if it is not text, or holds a number that is too long.
        ValueError: if it is not JSON.
        RecursionError: if it is nested too deeply.
    """
    if len(_text(text)) > _schema.LONGEST_JSON:
        raise Damage(f"one of its JSON texts has more than {_schema.LONGEST_JSON} characters")
    return json.loads(_text(text), parse_int=_parsed_integer, parse_constant=_no_constant)


def _no_constant(name: str) -> Any:
    raise Damage(f"its JSON contains {name[:10]}, which is not a number")


def _parsed_integer(digits: str) -> int:
    if len(digits) > _MAX_DIGITS:  # the time to convert them grows with the square of their number
        raise Damage("one of its whole numbers has too many digits")
    return int(digits)


_LENGTH_BYTES = 8


def check_safetensors(data: bytes) -> None:
    """Refuse a blob whose header does not describe its contents exactly.

    Args:
        data: the length of the header in 8 bytes, a JSON header, then the tensors one after another.

    Raises:
        Damage: if it does not.
    """
    length = int.from_bytes(data[:_LENGTH_BYTES], "little")
    start = _LENGTH_BYTES + length
    if len(data) < _LENGTH_BYTES or start > len(data):
        raise Damage("a captured tensor is cut short")
    header = load_json(data[_LENGTH_BYTES:start].decode())
    if type(header) is not dict:
        raise Damage("a captured tensor has no header")
    end = 0
    for begin, stop in sorted(_extent(tensor) for name, tensor in header.items() if name != "__metadata__"):
        if begin != end or stop < begin:
            raise Damage("captured tensors overlap or leave gaps")
        end = stop
    if end != len(data) - start:
        raise Damage("a captured tensor is cut short")


def _extent(tensor: object) -> tuple[int, int]:
    if type(tensor) is not dict or type(tensor.get("dtype")) is not str:
        raise Damage("a captured tensor has no dtype")
    _naturals(tensor.get("shape"))
    begin, stop = _naturals(tensor.get("data_offsets"))
    return begin, stop
