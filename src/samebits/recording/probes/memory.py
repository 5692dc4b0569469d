"""The data flow between events: it follows which event last wrote the memory of a tensor."""

from __future__ import annotations

import itertools
from array import array
from typing import Protocol

from samebits.digest.native import load_module
from samebits.records.events import NO_WRITER

# What is known of an op whose links are asked for (the same in bindings/memory.c): its outputs' contents come
# from outside torch; it draws from a generator; it writes to an argument.
SOURCE, RANDOM, WRITES = 1, 2, 4

_UNKNOWN = (0, NO_WRITER)


class Memory(Protocol):
    """**Protocol:** follows storages by address: each has a serial number and the event that last wrote it.

    A new storage can reuse an address. Storages that torch makes come out of an op, which starts a new serial
    there; memory made elsewhere (NumPy) is noticed by comparison, since its digest is not the writer's.
    """

    def op_links(self, seq: int, inputs: bytes, outputs: bytes, flags: int, /) -> bytes:
        """Return links of an op's inputs and outputs; outputs that are new or written get `seq` as writer.

        Args:
            seq: number of the op's event.
            inputs: where the storages of the tensors that it read begin, 8 bytes each.
            outputs: likewise for what it returned or wrote.
            flags: what is known of the op.
        """

    def event_links(self, seq: int, bases: bytes, writes: bool, /) -> bytes:  # noqa: FBT001
        """Return links of the tensors of another event.

        Args:
            seq: its number.
            bases: where their storages begin.
            writes: whether it counts as their writer, as a batch does.
        """


def memory_map() -> Memory:
    """Return a map that knows nothing yet: the C module's, or the one in Python."""
    module = load_module()
    made: Memory = MemoryMap() if module is None else module.MemoryMap()
    return made


class MemoryMap:
    """The map in Python; see `Memory`."""

    def __init__(self) -> None:
        self._entries: dict[int, tuple[int, int]] = {}
        self._serial = itertools.count(1).__next__

    def op_links(self, seq: int, inputs: bytes, outputs: bytes, flags: int, /) -> bytes:
        """See `Memory`."""
        entries = self._entries
        links: list[int] = []
        read = array("Q", inputs)
        for base in read:
            entry = entries.get(base)
            if entry is None or flags & SOURCE:
                entry = entries[base] = (self._serial(), NO_WRITER)
            links += entry
        if flags & RANDOM:
            links += _UNKNOWN
        for base in array("Q", outputs):
            if base in read:
                entry = entries[base]
                links += entry
                if flags & (WRITES | SOURCE):
                    entries[base] = (entry[0], seq)
            else:
                serial = self._serial()
                links += (serial, NO_WRITER)
                entries[base] = (serial, seq)
        entries.pop(0, None)  # no storage is there: tensors without contents are not linked
        return array("i", links).tobytes()

    def event_links(self, seq: int, bases: bytes, writes: bool, /) -> bytes:  # noqa: FBT001
        """See `Memory`."""
        entries = self._entries
        links: list[int] = []
        for base in array("Q", bases):
            if writes and base:
                entries[base] = (self._serial(), seq)
                links += (entries[base][0], NO_WRITER)
            else:
                links += entries.get(base, _UNKNOWN)
        return array("i", links).tobytes()
