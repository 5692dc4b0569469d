"""Which event last wrote the memory of a tensor: the data flow between events."""

from __future__ import annotations

import itertools
from array import array
from typing import TYPE_CHECKING, Any

from samebits.recording.events import NO_WRITER

if TYPE_CHECKING:
    from collections.abc import Sequence

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

    def op_links(
        self,
        seq: int,
        inputs: Sequence[Any],
        outputs: Sequence[Any],
        *,
        writes: bool,
        source: bool,
        rng: bool,
    ) -> bytes:
        """Links of an op's inputs and outputs; outputs that are new or written get `seq` as writer.

        Args:
            seq: number of the op's event.
            inputs: tensors it read.
            outputs: tensors it returned or wrote.
            writes: whether it writes to arguments.
            source: whether its outputs' contents come from outside torch.
            rng: whether the state of a generator stands between inputs and outputs.
        """
        entries, links, bases = self._entries, [], set()
        for tensor in inputs:
            base = address(tensor)
            bases.add(base)
            entry = entries.get(base)
            if entry is None or source:
                entry = entries[base] = (self._serial(), NO_WRITER)
            links += entry
        if rng:
            links += _UNKNOWN
        for tensor in outputs:
            base = address(tensor)
            if base in bases:
                serial, writer = entries[base]
                links += (serial, writer)
                if writes or source:
                    entries[base] = (serial, seq)
            else:
                serial = self._serial()
                links += (serial, NO_WRITER)
                entries[base] = (serial, seq)
        return array("i", links).tobytes()

    def event_links(self, seq: int, tensors: Sequence[Any], *, writes: bool) -> bytes:
        """Links of the tensors of another event; a batch counts as the writer of its tensors."""
        entries, links = self._entries, []
        for tensor in tensors:
            base = address(tensor)
            if writes:
                entries[base] = (self._serial(), seq)
                links += (entries[base][0], NO_WRITER)
            else:
                links += entries.get(base, _UNKNOWN)
        return array("i", links).tobytes()


def address(tensor: Any) -> int:
    """Where a tensor's storage begins; a number that no storage has for those without one (sparse)."""
    try:
        return int(tensor.untyped_storage().data_ptr())
    except (NotImplementedError, RuntimeError):
        return -id(tensor)
