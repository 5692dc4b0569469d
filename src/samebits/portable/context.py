"""`with samebits.portable():`."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from samebits.portable.activation import Activation

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def portable() -> Iterator[None]:
    """Compute with portable numerics inside the block: the same bits on every machine (docs/portable.md).

    It holds for this thread, for threads that are started inside the block, and for processes that are forked
    there. For a whole script, with the processes that it spawns: `samebits run --portable script.py`.

    Raises:
        SamebitsError: inside the block, for an op without portable values (`portable-op`), a tensor that
            portable mode has no values for (`portable-tensor`), compiled code (`portable-compiled`); on
            entering, where subnormal numbers are flushed to zero (`portable-subnormals`).
    """
    activation = Activation()
    activation.start()
    try:
        yield
    finally:
        activation.stop()
