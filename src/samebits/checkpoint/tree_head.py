"""The outermost level of a checkpoint's tree, checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from samebits.checkpoint.refusals import DamageError


@dataclass(frozen=True)
class TreeHead:
    """What a checkpoint's tree consists of.

    Args:
        step: None when it was not given.
        epoch: likewise.
        parts: pairs of a name and the JSON of its value.
        rng: the JSON of the states of RNG sources.
        run_seed: None when none was in force.
        recorded_steps: step boundaries in the record of the run by then; None when it was not recorded.
        surroundings: what `collect_surroundings` gave.
    """

    step: int | None
    epoch: int | None
    parts: list[list[Any]]
    rng: list[Any]
    run_seed: int | None
    recorded_steps: int | None
    surroundings: dict[str, dict[str, str]]


def read_head(tree: Any) -> TreeHead:
    """The outermost level.

    Raises:
        DamageError: it is not what `collect` makes.
    """
    if not isinstance(tree, dict) or tree.keys() != TreeHead.__dataclass_fields__.keys():
        raise DamageError("its tree has not the parts of a checkpoint")
    head = TreeHead(**tree)
    counts = (head.step, head.epoch, head.run_seed, head.recorded_steps)
    numbers = all(value is None or type(value) is int for value in counts)
    lists = isinstance(head.parts, list) and isinstance(head.rng, list)
    if not (numbers and lists and all(map(_is_part, head.parts)) and _is_surroundings(head.surroundings)):
        raise DamageError("its tree has parts of another form than those of a checkpoint")
    if head.run_seed is not None and not 0 <= head.run_seed < 1 << 64:
        raise DamageError("its run seed is not possible")
    return head


def _is_part(part: Any) -> bool:
    return isinstance(part, list) and len(part) == 2 and isinstance(part[0], str)


def _is_surroundings(found: Any) -> bool:
    return (
        isinstance(found, dict)
        and all(isinstance(facts, dict) for facts in found.values())
        and all(isinstance(value, str) for facts in found.values() for value in facts.values())
    )
