"""Which variants of a run are worth timing."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from samebits.cost.results import AGAIN, OFF, ON, Variant
from samebits.determinism.switch import When
from samebits.determinism.switches import switch_named

if TYPE_CHECKING:
    from samebits.determinism.control import Control

FLAG, FILL = "deterministic-algorithms", "fill-uninitialized"


def base_variants(control: Control) -> tuple[Variant, ...]:
    """No control twice, which shows the noise, and everything on."""
    return (
        Variant(OFF, None),
        Variant(AGAIN, None, why="the same as off: what differs is noise"),
        Variant(ON, replace(control, seed=None, on_drift="ignore"), why="all switches"),
    )


def switch_variants(
    control: Control, changed: dict[str, str], facts: dict[str, Any]
) -> tuple[tuple[Variant, ...], tuple[tuple[str, str], ...]]:
    """One variant for each switch that changes something on this machine, and why the others have none.

    Args:
        control: as it is asked for.
        changed: switches that control gave another value than the run had without it: name, value.
        facts: `switches` of a run with everything on: name, what came of it.
    """
    variants, left_out = [], []
    for name, row in facts.items():
        reason = _why_not(name, row, changed, has_cuda=bool(row.get("cuda")))
        if reason:
            left_out.append((name, reason))
        else:
            variants.append(_alone(control, name, changed))
    return tuple(variants), tuple(left_out)


def _why_not(name: str, row: dict[str, Any], changed: dict[str, str], *, has_cuda: bool) -> str:
    if row["state"] == "held":
        return "is watched, not set"
    if row["state"] not in ("set", "kept"):
        return str(row.get("why") or row["state"])
    if name not in changed:
        return "has the wanted value without control too"
    if switch_named(name).when in (When.CUDA, When.GROUP) and not has_cuda:
        return "acts on CUDA only, and there is no CUDA device"
    return ""


def _alone(control: Control, name: str, changed: dict[str, str]) -> Variant:
    """A switch alone; one that acts only under the deterministic flag is measured on top of it."""
    chosen = ((name, changed[name]),)
    over, why = OFF, ""
    if name == FLAG:
        chosen, why = (*chosen, (FILL, "off")), f"without {FILL}"
    elif name == FILL:
        chosen, over, why = (*chosen, (FLAG, "on")), FLAG, f"on top of {FLAG}"
    only = replace(control, seed=None, switches=chosen, all_switches=False, on_drift="ignore", workers=False)
    return Variant(name, only, over, why)
