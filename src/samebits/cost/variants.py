"""Which variants of a run are worth timing."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from samebits.cost.results import AGAIN, OFF, ON, Variant
from samebits.determinism.switch import When
from samebits.determinism.switches import switch_named

if TYPE_CHECKING:
    from collections.abc import Mapping

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
    control: Control, rows: dict[str, dict[str, Any]], variables: Mapping[str, str], *, has_cuda: bool
) -> tuple[tuple[Variant, ...], tuple[tuple[str, str], ...]]:
    """One variant for each switch that changes something on this machine, and why the others have none.

    Args:
        control: as it is asked for.
        rows: what came of each switch in a run with everything on.
        variables: those that control set for that run.
        has_cuda: whether the script can use CUDA.
    """
    variants, left_out = [], []
    for name, row in rows.items():
        changed = row["before"] != row["now"] or name in variables
        reason = _why_not(name, row, changed=changed, has_cuda=has_cuda)
        if reason:
            left_out.append((name, reason))
        else:
            variants.append(_alone(control, name, row["wanted"]))
    return tuple(variants), tuple(left_out)


def _why_not(name: str, row: dict[str, Any], *, changed: bool, has_cuda: bool) -> str:
    if row["state"] == "held":
        return "is watched, not set"
    if row["state"] not in ("set", "kept"):
        return str(row.get("why") or row["state"])
    if not changed:
        return "has the wanted value without control too"
    if switch_named(name).when in (When.CUDA, When.GROUP) and not has_cuda:
        return "acts on CUDA only, and there is no CUDA device"
    return ""


def _alone(control: Control, name: str, value: str) -> Variant:
    """A switch alone; one that acts only under the deterministic flag is measured on top of it."""
    chosen: tuple[tuple[str, str], ...] = ((name, value),)
    over, why = OFF, ""
    if name == FLAG:
        chosen, why = (*chosen, (FILL, "off")), f"without {FILL}"
    elif name == FILL:
        chosen, over, why = (*chosen, (FLAG, "on")), FLAG, f"on top of {FLAG}"
    only = replace(control, seed=None, switches=chosen, all_switches=False, on_drift="ignore", workers=False)
    return Variant(name, only, over, why)
