"""Which variants of a run are worth timing."""

from __future__ import annotations

from importlib import metadata
from typing import TYPE_CHECKING, Any

from samebits.cost.results import AGAIN, OFF, ON, Variant
from samebits.determinism.switch import When
from samebits.determinism.switches import switch_named
from samebits.doctor.relevance import readers_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from samebits.determinism.control import Control

FLAG, FILL, COMPILER_FLAG = "deterministic-algorithms", "fill-uninitialized", "inductor-deterministic"
WATCHED = "watched, not set"


def base_variants(control: Control) -> tuple[Variant, ...]:
    """No control twice, which shows the noise, and everything on."""
    return (
        Variant(OFF, None),
        Variant(AGAIN, None, why="the same as off: what differs is noise"),
        Variant(ON, control._replace(seed=None, on_drift="ignore"), why="all switches"),
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
    compiled = rows.get(COMPILER_FLAG, {}).get("state") != "waiting"
    variants, left_out = [], []
    for name, row in rows.items():
        changed = row["before"] != row["now"] or name in variables or name == FILL
        reason = _why_not(name, row, changed=changed) or _why_no_effect(name, has_cuda, compiled)
        if reason:
            left_out.append((name, reason))
        else:
            variants.append(_alone(control, name, row["wanted"]))
    return tuple(variants), tuple(left_out)


def _why_not(name: str, row: dict[str, Any], *, changed: bool) -> str:
    if row["state"] == "held":
        return WATCHED
    if name.startswith(("inductor", "TORCHINDUCTOR")) and row["state"] == "waiting":
        return "the script compiles nothing"
    if row["state"] not in ("set", "kept"):
        return str(row.get("why") or row["state"])
    return "" if changed else "has the wanted value without control too"


def _why_no_effect(name: str, has_cuda: bool, compiled: bool) -> str:  # noqa: FBT001 - facts
    """Why a switch that was set changes nothing in this script."""
    readers = readers_of(name)
    if readers and not any(_is_installed(package) for package in readers):
        return f"is read by {readers[0]} only, which is not installed"
    if name.startswith("TORCHINDUCTOR") and not compiled:
        return "the script compiles nothing"
    on_cuda = switch_named(name).when in (When.CUDA, When.GROUP) or name.startswith("cudnn")
    return "acts on CUDA only, and there is no CUDA device" if on_cuda and not has_cuda else ""


def _is_installed(package: str) -> bool:
    try:
        metadata.distribution(package)
    except metadata.PackageNotFoundError:
        return False
    return True


def _alone(control: Control, name: str, value: str) -> Variant:
    """A switch alone; one that acts only under the deterministic flag is measured on top of it."""
    chosen: tuple[tuple[str, str], ...] = ((name, value),)
    over, why = OFF, ""
    if name == FLAG:
        chosen, why = (*chosen, (FILL, "off")), f"without {FILL}"
    elif name == FILL:
        chosen, over, why = (*chosen, (FLAG, "on")), FLAG, f"on top of {FLAG}"
    only = control._replace(seed=None, switches=chosen, all_switches=False, on_drift="ignore", workers=False)
    return Variant(name, only, over, why)
