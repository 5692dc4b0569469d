"""The switches: those that the user set against a promise, and those that nobody set."""

from __future__ import annotations

from typing import TYPE_CHECKING

from samebits.commands.doctor.relevance import is_relevant
from samebits.commands.doctor.threat import BREAKS, MAY_BREAK, NOTE, Threat

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from samebits.commands.doctor.environment import EnvironmentSnapshot, SwitchView

HASH_SEED = "PYTHONHASHSEED"  # has a check of its own


def differing(here: EnvironmentSnapshot) -> tuple[SwitchView, ...]:
    """Return the switches that matter here and that control would change, or whose value is not possible."""
    return tuple(view for view in _relevant(here) if not view.fits or view.problem)


def unfit_variables(here: EnvironmentSnapshot) -> Iterable[Threat]:
    """No environment variable has a value that breaks a promise or is not possible."""
    for view in differing(here):
        if not view.is_variable or not view.now or view.name == HASH_SEED:
            continue
        reason = f"expected {view.problem}" if view.problem else view.why
        remedy = f"unset {view.name}" if view.wanted is None else f"export {view.name}={view.wanted}"
        yield Threat(
            view.promises[0],
            view.name,
            f"{view.name}={view.now}: {reason}",
            f"It is set in the environment that a script would have here: {view.why}.",
            f"{remedy}; samebits run --seed N SCRIPT" if view.wanted else remedy,
            view.source,
            MAY_BREAK if view.wanted is None else BREAKS,
        )


def unset_switches(here: EnvironmentSnapshot) -> Iterable[Threat]:
    """The switches of a fresh process are those of a repeatable run."""
    views = [view for view in differing(here) if not (view.is_variable and view.now)]
    if views:
        names = ", ".join(view.name for view in views)
        verb = "switch is" if len(views) == 1 else "switches are"
        yield Threat(
            "repeatable",
            "switches",
            f"{len(views)} {verb} not set as a repeatable run needs, listed below",
            f"A script starts with torch's own defaults: {names}.",
            "samebits run --seed N SCRIPT, or samebits.deterministic(seed=N)",
            "samebits doctor --switches; PyTorch notes on reproducibility",
            MAY_BREAK,
        )


def set_variables(here: EnvironmentSnapshot) -> Iterable[Threat]:
    """No variable is set that changes bits but breaks no promise here."""
    views = [view for view in _relevant(here) if view.is_variable and view.now and view.wanted is None]
    views = [view for view in views if not view.problem]
    if views:
        texts = ", ".join(f"{view.name}={view.now}" for view in views)
        yield Threat(
            "portable",
            "variables",
            f"set here: {texts}",
            "Each of them changes bits: a shell, a job or a machine without them gives different bits.",
            "set the same wherever runs are compared",
            "; ".join(dict.fromkeys(view.source for view in views)),
            NOTE,
        )


def _relevant(here: EnvironmentSnapshot) -> Iterator[SwitchView]:
    return (view for view in here.switches if is_relevant(view, here))
