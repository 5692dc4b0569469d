"""The named tensors of a record: for each name, its tensors in order."""

from __future__ import annotations

from array import array
from collections import Counter
from typing import TYPE_CHECKING

from samebits.comparison.programs.outcome import STATE, Name, Place, Source
from samebits.recording.naming import ROOT, without_wrappers
from samebits.records.events import END, MODULE_OUTPUT
from samebits.records.kinds import EventKind, Role

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from samebits.comparison.lookup import Record
    from samebits.records.events import Event

_WIDTH = 16
_UNREAD = bytes(_WIDTH)  # in place of the digest of a tensor that could not be read
_KINDS = (EventKind.TAP, EventKind.BATCH, EventKind.LOSS, EventKind.GRAD, EventKind.STEP)
_SOURCES = {
    Role.PARAM: Source.PARAM,
    Role.BUFFER: Source.BUFFER,
    Role.GRAD: Source.GRAD,
    Role.OPTIMIZER: Source.OPTIMIZER,
}
_PATHS = STATE | {Source.MODULE}
_MOST_PREFIX = 3  # parts of names


class Series:
    """The tensors of one name, 28 bytes each: a run may have millions.

    Attributes:
        seqs: numbers of their events.
        unread: how many of them could not be read when they were recorded.
        positions: of the tensors in these.
        threads: in which they were made.
    """

    def __init__(self) -> None:
        self.seqs = array("q")
        self.positions = array("i")
        self.threads: set[str] = set()
        self.unread = 0
        self._digests = bytearray()
        self._step = -1

    def __len__(self) -> int:
        return len(self.seqs)

    def add(self, event: Event, position: int, *, per_step: bool) -> None:
        """Append a tensor, or put it in place of the last one of the same step."""
        if per_step and self._step == event.step:
            self.seqs.pop()
            self.positions.pop()
            self.unread -= not self.is_read(len(self.seqs))
            del self._digests[-_WIDTH:]
        self._step = event.step
        self.seqs.append(event.seq)
        self.positions.append(position)
        self.threads.add(event.thread)
        self._digests += event.digests[position]
        self.unread += event.digests[position] == _UNREAD

    def digest(self, call: int) -> bytes:
        """Return the digest of one tensor."""
        return bytes(self._digests[_WIDTH * call : _WIDTH * (call + 1)])

    def contents(self, calls: int) -> bytes:
        """Return the digests of the first tensors."""
        return bytes(self._digests[: _WIDTH * calls])

    def is_read(self, call: int) -> bool:
        """Tell whether a tensor could be read when it was recorded."""
        return self.digest(call) != _UNREAD

    def place(self, name: Name, call: int, record: Record) -> Place:
        """Return one tensor with what the record says of it."""
        event = record.event(self.seqs[call])
        position = self.positions[call]
        return Place(name, call, event.step, event.site, event.tensors[position], event.seq, position)


Named = dict[Name, Series]


def read(record: Record, note: Callable[[Event], None]) -> Named:
    """Return the tensors of a record by name, in the order in which the names appear.

    Args:
        record: the record.
        note: told of each event with named tensors.
    """
    named: Named = {}
    for event in record.events(_KINDS):
        note(event)
        if event.kind == EventKind.STEP and event.op == END:
            continue  # the state after the last step is there already
        if event.kind == EventKind.GRAD and event.op == "grad":
            continue  # `torch.autograd.grad` gives values of its own
        for position, name in _names(event):
            series = named.get(name)
            if series is None:
                series = named[name] = Series()
            series.add(event, position, per_step=name.source in STATE)
    return named


def _names(event: Event) -> Iterator[tuple[int, Name]]:
    if event.kind == EventKind.TAP:
        source = Source.MODULE if event.arguments == MODULE_OUTPUT else Source.TAP
        for position, info in enumerate(event.tensors):
            yield position, Name(source, f"{event.op}.{info.name}" if info.name else event.op)
        return
    source = Source.BATCH if event.kind == EventKind.BATCH else Source.LOSS
    for position, info in enumerate(event.tensors):
        if info.role in _SOURCES:
            yield position, Name(_SOURCES[info.role], without_wrappers(info.name))
        elif info.role == Role.VALUE:
            single = source is Source.LOSS and len(event.tensors) == 1
            yield position, Name(source, source.value if single else f"{source.value}.{info.name}")


def without_prefixes(a: Named, b: Named) -> tuple[Named, Named, tuple[str, str]]:
    """Leave out what all paths of one program begin with, where that gives more common names.

    For example, one program holds its model in another module: `model.fc.weight` there is `fc.weight` here.

    Returns:
        The tensors of both by their new names, and the prefixes that were left out.
    """
    best = (len(a.keys() & b.keys()), a, b, ("", ""))
    choices = [(prefix, _shortened(a, prefix)) for prefix in _prefixes(a)]
    others = [(prefix, _shortened(b, prefix)) for prefix in _prefixes(b)]
    for ours, short_a in choices:
        for theirs, short_b in others:
            common = len(short_a.keys() & short_b.keys())
            if common > best[0]:
                best = (common, short_a, short_b, (ours, theirs))
    return best[1], best[2], best[3]


def _prefixes(named: Named) -> list[str]:
    """Return the beginnings that all paths share, the empty one first."""
    paths = [name.name for name in named if name.source in STATE - {Source.OPTIMIZER}]
    paths = paths or [name.name for name in named if name.source is Source.MODULE and name.name != ROOT]
    found = [""]
    for length in range(1, _MOST_PREFIX + 1):
        starts = Counter(".".join(path.split(".")[:length]) + "." for path in paths)
        if len(starts) != 1 or not all(path.startswith(next(iter(starts))) for path in paths):
            break
        found.append(next(iter(starts)))
    return found


def _shortened(named: Named, prefix: str) -> Named:
    if not prefix:
        return named
    shortened: Named = {}
    for name, series in named.items():
        new = name
        if name.source in _PATHS and name.name.startswith(prefix):
            new = name._replace(name=name.name[len(prefix) :])
        elif (
            name.source is Source.MODULE
            and f"{name.name}." == prefix
            and name._replace(name=ROOT) not in named
        ):
            new = name._replace(name=ROOT)
        shortened[name if new in named else new] = series
    return shortened
