"""Plans: the changes that interventions make to a run and its processes."""

from __future__ import annotations

import dataclasses
import difflib
from typing import TYPE_CHECKING

from samebits.errors import SamebitsError
from samebits.interventions.intervention import Replacements
from samebits.interventions.table import INTERVENTIONS
from samebits.switches.switch import Control
from samebits.switches.table import environment_for

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from samebits.interventions.intervention import Intervention

SEED = 1
"""The seed of the RNG sources."""
_NEAR = 0.7  # how like a name that is meant has to be


@dataclasses.dataclass(frozen=True, slots=True)
class InterventionPlan:
    """The changes that interventions make to a run.

    Args:
        environment: variables beside the user's own.
        fixed_layout: address space randomisation is switched off.
        control: the control of the process, the user's own included; None for none.
    """

    environment: dict[str, str]
    fixed_layout: bool
    control: Control | None


def intervention_named(name: str) -> Intervention:
    """Return the intervention of that name.

    Raises:
        SamebitsError: there is none; `pin-unknown`.
    """
    by_name = {intervention.name: intervention for intervention in INTERVENTIONS}
    if name not in by_name:
        near = difflib.get_close_matches(name, by_name, n=1, cutoff=_NEAR)
        hint = f"did you mean {near[0]}? " if near else ""
        message = f"there is no pin {name!r}; {hint}expected one of {', '.join(by_name)}"
        raise SamebitsError(message, slug="pin-unknown")
    return by_name[name]


def why_not(intervention: Intervention | str) -> str:
    """Say why an intervention is impossible on this machine; empty when it is possible."""
    return (intervention_named(intervention) if isinstance(intervention, str) else intervention).obstacle()


def check_interventions(names: Iterable[str]) -> None:
    """Refuse interventions that do not exist or are impossible on this machine.

    Raises:
        SamebitsError: `pin-unknown` or `pin-impossible`.
    """
    for name in names:
        reason = why_not(name)
        if reason:
            message = f"the pin {name} is not possible here: {reason}; leave it out, or use another machine"
            raise SamebitsError(message, slug="pin-impossible")


def without_implied(names: Iterable[str]) -> tuple[str, ...]:
    """Leave out interventions that another one includes: fixed addresses fix the hash seed too.

    Raises:
        SamebitsError: `pin-unknown`.
    """
    interventions = [intervention_named(name) for name in dict.fromkeys(names)]
    return tuple(
        intervention.name
        for intervention in interventions
        if not any(_implies(other, intervention) for other in interventions)
    )


def _implies(other: Intervention, intervention: Intervention) -> bool:
    more_than_variables = (
        intervention.fixed_layout
        or intervention.sources
        or intervention.switches
        or intervention.patch is not None
    )
    return (
        other is not intervention
        and not more_than_variables
        and set(intervention.environment) < set(other.environment)
    )


def combine(names: Iterable[str], control: Control | None, environ: Mapping[str, str]) -> InterventionPlan:
    """Return the changes to a run for all of these interventions and the user's own control.

    A switch that the user set keeps its value. The user's seed, which seeds everything, stays too.

    Args:
        names: names of the interventions.
        control: the user's own control.
        environ: the variables that the run would have without them.

    Raises:
        SamebitsError: `pin-unknown`.
    """
    interventions = tuple(intervention_named(name) for name in dict.fromkeys(names))
    merged = _control(interventions, control)
    variables: dict[str, str] = {}
    for intervention in interventions:
        for name, value in intervention.environment:
            wanted = _variable(name, value, {**environ, **variables})
            if wanted is not None:
                variables[name] = wanted
    if merged is not None:
        variables = {**environment_for(merged, {**environ, **variables}).variables, **variables}
    fixed_layout = any(intervention.fixed_layout for intervention in interventions)
    return InterventionPlan(variables, fixed_layout, merged)


def _variable(name: str, value: str, environ: Mapping[str, str]) -> str | None:
    current = environ.get(name, "")
    if name == "PYTHONHASHSEED" and current.isdecimal():
        return None  # it is fixed already
    if name == "GLIBC_TUNABLES" and current:
        return f"{current}:{value}"  # the later of two settings is in effect
    return value


def _control(interventions: tuple[Intervention, ...], control: Control | None) -> Control | None:
    sources = tuple(source for intervention in interventions for source in intervention.sources)
    switches = tuple(switch for intervention in interventions for switch in intervention.switches)
    patches = tuple(intervention.name for intervention in interventions if intervention.patch is not None)
    if not (sources or switches or patches):
        return control
    base = control or Control(all_switches=False, on_drift="ignore", workers=False)
    set_by_user = {name for name, _ in base.switches}
    added = tuple(switch for switch in switches if switch[0] not in set_by_user)
    merged = base._replace(switches=(*base.switches, *added), pins=patches)
    if not sources or base.seed is not None:
        return merged
    return merged._replace(seed=SEED, sources=sources, workers=False)


class ActiveInterventions:
    """The interventions that are active in this process; children get them with the control that names them.

    Args:
        names: names of the interventions; those without a part inside the process are skipped.
    """

    def __init__(self, names: tuple[str, ...]) -> None:
        self._patches = [
            intervention.patch
            for intervention in INTERVENTIONS
            if intervention.name in names and intervention.patch is not None
        ]
        self._replacements: Replacements | None = None

    def install(self) -> None:
        """Install them, also in modules that are imported later."""
        self._replacements = Replacements()
        self._replacements.imports.install()
        for patch in self._patches:
            patch(self._replacements)

    def remove(self) -> None:
        """Put everything back."""
        if self._replacements is not None:
            self._replacements.remove()
            self._replacements = None
