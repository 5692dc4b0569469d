"""The address layout of processes that are started: Linux's `personality`."""

from __future__ import annotations

import contextlib
import ctypes
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_ADDR_NO_RANDOMIZE = 0x0040000  # <sys/personality.h>
_QUERY = 0xFFFFFFFF


def can_fix_layout() -> bool:
    """Whether address space randomisation can be switched off here (containers often forbid it)."""
    before = _personality(_QUERY)
    if before is None or _personality(before | _ADDR_NO_RANDOMIZE) is None:
        return False
    _personality(before)
    return True


@contextlib.contextmanager
def fixed_layout(*, fixed: bool = True) -> Iterator[None]:
    """Inside, children of this thread start without address space randomisation.

    Args:
        fixed: False changes nothing.
    """
    before = _personality(_QUERY) if fixed else None
    if before is None:
        yield
        return
    _personality(before | _ADDR_NO_RANDOMIZE)
    try:
        yield
    finally:
        _personality(before)


def _personality(persona: int) -> int | None:
    """The Linux call of that name: sets, and gives what was before; None where it is refused."""
    if sys.platform != "linux":
        return None
    result = int(ctypes.CDLL(None).personality(ctypes.c_ulong(persona)))
    return None if result == -1 else result
