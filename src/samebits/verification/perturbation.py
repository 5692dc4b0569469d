"""`--stress`: changes of what must not matter, so that few runs bring out a latent nondeterminism."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from samebits.hooks.layout import can_fix_layout

if TYPE_CHECKING:
    from collections.abc import Mapping

    from samebits.environment import FactDifference

_VARIABLES = ("PYTHONHASHSEED", "MALLOC_PERTURB_", "SAMEBITS_PADDING")
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


def is_of_stress(fact: FactDifference) -> bool:
    """Whether a difference between the environments of two runs is one that `stress` makes."""
    if fact.path == ("variables",):
        return fact.entry in _VARIABLES
    return fact.path == ("python", "hash_seed")
