"""RNG states with those of the generators that a loader holds: its own, its sampler's, its dataset's.

accelerate gives the sampler a generator of its own where there are several ranks, and so do users anywhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from samebits.rng.code_generators import CodeGenerators
from samebits.rng.states import SourceState, restore_states, save_states

if TYPE_CHECKING:
    from collections.abc import Iterable

_HELD = "generator:"  # begins their names


def states_with(loader: Any) -> tuple[SourceState, ...]:
    """Return the states of all RNG sources, and of the generators that a loader holds.

    Args:
        loader: torch's own, wrapped or not; None for none.
    """
    held = CodeGenerators({"loader": _innermost(loader)}).states().saved
    return (*save_states(), *(state for source, state in held if source.name.startswith(_HELD)))


def restore_with(states: Iterable[SourceState], loader: Any) -> None:
    """Put back what `states_with` gave.

    Args:
        states: the states.
        loader: made alike; None where it is not known yet, and what a loader holds stays as it is.
    """
    held = {state.source: state for state in states if state.source.startswith(_HELD)}
    restore_states(state for state in states if state.source not in held)
    restore_held(held.values(), loader)


def restore_held(states: Iterable[SourceState], loader: Any) -> None:
    """Put back the generators that a loader holds, and nothing else."""
    saved = {state.source: state for state in states}
    for source, _ in CodeGenerators({"loader": _innermost(loader)}).states().saved:
        if source.name.startswith(_HELD) and source.name in saved:
            source.set_state(saved[source.name].data)


def _innermost(loader: Any) -> Any:
    """Return torch's loader inside of those of accelerate."""
    while (inner := getattr(loader, "base_dataloader", None)) is not None:
        loader = inner
    return loader
