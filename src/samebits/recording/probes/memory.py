"""Which event last wrote the memory of a tensor: the data flow between events."""

from __future__ import annotations

import itertools
from array import array
from typing import TYPE_CHECKING, Any

from samebits.recording.events import NO_WRITER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from samebits.recording.probes.op_specs import OpSpec

_UNKNOWN = (0, NO_WRITER)


class MemoryMap:
    """Follows storages by address: each has a serial number and the event that last wrote it.

    An address can be reused by a new storage. Storages that torch makes come out of an op, which starts a
    new serial there; memory made elsewhere (NumPy) is noticed by comparison, since its digest is not that of
    the writer.
    """

    def __init__(self) -> None:
        self._entries: dict[int, tuple[int, int]] = {}
        self._serial = itertools.count(1).__next__

    def op_links(self, seq: int, inputs: list[int], outputs: list[int], spec: OpSpec) -> bytes:
        """Links of an op's inputs and outputs; outputs that are new or written get `seq` as writer.

        Args:
            seq: number of the op's event.
            inputs: where the storages of the tensors that it read begin.
            outputs: likewise for what it returned or wrote.
            spec: what is known of the op.
        """
        entries = self._entries
        links: list[int] = []
        for base in inputs:
            entry = entries.get(base)
            if entry is None or spec.source:
                entry = entries[base] = (self._serial(), NO_WRITER)
            links += entry
        if spec.random:
            links += _UNKNOWN
        for base in outputs:
            if base in inputs:
                entry = entries[base]
                links += entry
                if spec.writes or spec.source:
                    entries[base] = (entry[0], seq)
            else:
                serial = self._serial()
                links += (serial, NO_WRITER)
                entries[base] = (serial, seq)
        entries.pop(0, None)  # no storage is there: tensors without contents are not linked
        return array("i", links).tobytes()

    def event_links(self, seq: int, tensors: Sequence[Any], *, writes: bool) -> bytes:
        """Links of the tensors of another event; a batch counts as the writer of its tensors."""
        entries = self._entries
        links: list[int] = []
        for tensor in tensors:
            base = address(tensor)
            if writes and base:
                entries[base] = (self._serial(), seq)
                links += (entries[base][0], NO_WRITER)
            else:
                links += entries.get(base, _UNKNOWN)
        return array("i", links).tobytes()


def address(tensor: Any) -> int:
    """Where a tensor's storage begins; 0 for those without contents or without one (sparse)."""
    try:
        return int(tensor.untyped_storage().data_ptr())
    except (NotImplementedError, RuntimeError):
        return 0
