"""Which options do not go alone: a default of such an option is passed over where it would be refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

ONE_PROCESS = ("stress", "replay", "full", "fix", "apply", "verbose", "budget", "fresh", "quick", "html")
"""Options of `verify` that do not go with `--nproc-per-node`."""
NEEDS: Mapping[str, tuple[str, ...]] = {
    "tolerance": ("align",),
    "apply": ("fix",),
    "share": ("fresh",),
    "executor-option": ("executor",),
    "per-rank-seeds": ("seed",),
    "reseed": ("seed",),
    "keyed-samples": ("seed",),
    "set": ("seed", "deterministic"),
    "leave": ("seed", "deterministic"),
    "on-drift": ("seed", "deterministic"),
}
"""Options that need one of others; where a command has none of these, they go alone."""
CLASHES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "compare": {"state-only": ("align",), "align": ("ranks", "state-only"), "html": ("ranks",)},
    "verify": {
        **dict.fromkeys(ONE_PROCESS, ("nproc-per-node",)),
        "quick": ("fix", "nproc-per-node"),
        "fix": ("quick", "nproc-per-node"),
        "fresh": ("executor", "nproc-per-node"),
        "one-at-a-time": ("executor",),
        "executor": ("fresh", "one-at-a-time", "nproc-per-node"),
    },
    "resume-check": {"kill-at": ("kills",), "kills": ("kill-at",)},
    "spread": {"versus": ("against",), "against": ("versus",)},
}
"""Options of each command, with those that they do not go with."""
REFUSED: Mapping[str, tuple[str, ...]] = {"cost": ("portable",)}
"""Options that a command has and refuses, because it has them with others."""


def without_refused(
    command: str, defaults: Collection[str], given: Collection[str], options: Collection[str]
) -> set[str]:
    """Return the defaults that go with the command line and with each other.

    Args:
        command: its name.
        defaults: names of options that have one, without dashes, as all names here.
        given: options that hold anyway: on the command line, or implied by the command.
        options: all options of the command.
    """
    clashes = CLASHES.get(command, {})
    kept = {name for name in defaults if not set(clashes.get(name, ())) & set(given)}
    kept -= {*REFUSED.get(command, ())}
    lone = kept
    while lone:
        lone = {name for name in kept if not _goes(name, {*kept, *given}, options)}
        kept -= lone
    return kept


def _goes(name: str, present: Collection[str], options: Collection[str]) -> bool:
    """Tell whether an option has one of those that it needs."""
    needed = {other for other in NEEDS.get(name, ()) if other in options}
    return not needed or bool(needed & set(present))
