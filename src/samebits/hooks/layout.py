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


def why_layout_cannot_be_fixed() -> str:
    """Why `fixed_layout` has no effect here; empty when it has."""
    if can_fix_layout():
        return ""
    return "personality(ADDR_NO_RANDOMIZE) is refused (containers often forbid it), or this is not Linux"


def layout_is_fixed() -> bool:
    """Whether this process was started without address space randomisation."""
    return bool((_personality(_QUERY) or 0) & _ADDR_NO_RANDOMIZE)


@contextlib.contextmanager
def fixed_layout(*, fixed: bool = True) -> Iterator[None]:
    """Inside, children of this thread start without address space randomisation.

    Args:
        fixed: False changes nothing.
    """
    before = _personality(_QUERY) if fixed else None
    if before is None or before & _ADDR_NO_RANDOMIZE:
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
