"""`--stress`: changes of what must not matter, so that few runs bring out a latent nondeterminism."""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# By these a note about differing environments is known to speak of a perturbation.
STRESS_WORDS = ("PYTHONHASHSEED", "MALLOC_PERTURB_", "SAMEBITS_PADDING", "hash seed of Python")
_ADDR_NO_RANDOMIZE = 0x0040000  # <sys/personality.h>
_QUERY = 0xFFFFFFFF
_FILL_BYTES = (0x55, 0xAA, 0x33, 0xCC, 0x0F, 0xF0)


@dataclass(frozen=True)
class Perturbation:
    """What one run gets that another does not.

    Args:
        environment: environment variables.
        fixed_layout: switch address space randomisation off.
        scheduling_noise: seed of the thread that disturbs scheduling; 0 is off.
        description: what was changed, in words.
    """

    environment: Mapping[str, str] = field(default_factory=dict)
    fixed_layout: bool = False
    scheduling_noise: int = 0
    description: tuple[str, ...] = ()


NONE = Perturbation()


def stress(run: int, environment: Mapping[str, str] = os.environ) -> Perturbation:
    """The perturbation of run number `run`, from 0; the same one each time it is asked for.

    A hash seed that the user has pinned is left alone: it is then no longer a thing that must not matter.
    """
    fill = _FILL_BYTES[run % len(_FILL_BYTES)]
    padding = 17 + (run * 1111) % 4093  # moves the stack, which starts below the environment
    changes = {"SAMEBITS_PADDING": "x" * padding}
    words = [f"environment padding {padding} bytes", f"scheduling noise {run + 1}"]
    if environment.get("PYTHONHASHSEED", "random") in ("", "random"):
        changes["PYTHONHASHSEED"] = str(run + 1)
        words.insert(0, f"PYTHONHASHSEED={run + 1}")
    if sys.platform == "linux":  # a glibc setting; other C libraries ignore it
        changes["MALLOC_PERTURB_"] = str(fill)
        words.append(f"memory fill 0x{fill:02X}")
    fixed = run % 2 == 0 and can_fix_layout()
    words.append("fixed addresses" if fixed else "default addresses")
    return Perturbation(changes, fixed, run + 1, tuple(words))


def can_fix_layout() -> bool:
    """Whether address space randomisation can be switched off here (containers often forbid it)."""
    before = _personality(_QUERY)
    if before is None or _personality(before | _ADDR_NO_RANDOMIZE) is None:
        return False
    _personality(before)
    return True


@contextlib.contextmanager
def applied(perturbation: Perturbation) -> Iterator[None]:
    """Inside, children of this thread start with the perturbation's address layout."""
    before = _personality(_QUERY) if perturbation.fixed_layout else None
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
