"""Everything that one checkpoint holds, and its way into a file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from samebits.checkpoint.atomic import replaced
from samebits.checkpoint.container import write_container
from samebits.checkpoint.refusals import unsaveable
from samebits.checkpoint.surroundings import collect_surroundings
from samebits.checkpoint.tree import TreeWriter, source_state_node
from samebits.determinism.process import PROCESS
from samebits.determinism.rng import save_states

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from samebits.checkpoint.entries import Entry


RESERVED = ("strict", "map_location", "rng")


@dataclass(frozen=True)
class Collection:
    """What is to be written.

    Args:
        tree: JSON of everything beside the arrays.
        entries: the arrays; they share memory with the objects that they are of.
    """

    tree: Any
    entries: Sequence[Entry]


def collect(step: int | None, epoch: int | None, parts: Mapping[str, Any]) -> Collection:
    """Everything that a checkpoint holds, at this moment.

    Raises:
        SamebitsError: something cannot be saved, `checkpoint-entry`; an RNG source cannot, `rng-state`.
    """
    for name, count in (("step", step), ("epoch", epoch)):
        if count is not None and type(count) is not int:
            raise unsaveable(name, f"it is {count!r}; expected a whole number or None")
    for name in RESERVED:
        if name in parts:
            reason = f"`load` has an argument `{name}`; give the part another name"
            raise unsaveable(name, reason)
    entries: list[Entry] = []
    writer = TreeWriter(entries)
    tree = {
        "step": step,
        "epoch": epoch,
        "parts": [[name, writer.encode(value, name)] for name, value in parts.items()],
        "rng": [source_state_node(state) for state in save_states()],
        "run_seed": PROCESS.run_seed,
        "recorded_steps": None if PROCESS.recorded_steps is None else PROCESS.recorded_steps(),
        "surroundings": collect_surroundings(),
    }
    return Collection(tree, entries)


def write(path: str, collection: Collection) -> None:
    """Write a checkpoint, whole or not at all.

    Raises:
        SamebitsError: `checkpoint-unwritable`.
    """
    with replaced(path) as file:
        write_container(file, collection.tree, collection.entries)
