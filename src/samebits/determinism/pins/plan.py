"""From the names of pins to what a run needs for them."""

from __future__ import annotations

import dataclasses
import difflib
from typing import TYPE_CHECKING

from samebits.determinism.control import Control
from samebits.determinism.pins.table import PINS, Pin
from samebits.determinism.switches import environment_for
from samebits.errors import SamebitsError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

SEED = 1
"""What RNG sources are seeded with."""


@dataclasses.dataclass(frozen=True, slots=True)
class PinPlan:
    """What a run with some pins gets.

    Args:
        environment: variables beside the user's own.
        fixed_layout: address space randomisation is switched off.
        control: what the process is to do, the user's own control included; None for nothing.
        patches: names of the pins that replace something inside the process; `control.pins`.
    """

    environment: dict[str, str]
    fixed_layout: bool
    control: Control | None
    patches: tuple[str, ...]


def pin_named(name: str) -> Pin:
    """The pin of that name.

    Raises:
        SamebitsError: there is none; `pin-unknown`.
    """
    by_name = {pin.name: pin for pin in PINS}
    if name not in by_name:
        near = difflib.get_close_matches(name, by_name, n=1)
        hint = f"did you mean {near[0]}? " if near else ""
        message = f"there is no pin {name!r}; {hint}expected one of {', '.join(by_name)}"
        raise SamebitsError(message, slug="pin-unknown")
    return by_name[name]


def why_not(pin: Pin | str) -> str:
    """Why a pin cannot be had on this machine, empty when it can."""
    return (pin_named(pin) if isinstance(pin, str) else pin).obstacle()


def check_pins(names: Iterable[str]) -> None:
    """Refuse pins that do not exist or cannot be had here.

    Raises:
        SamebitsError: `pin-unknown` or `pin-impossible`.
    """
    for name in names:
        reason = why_not(name)
        if reason:
            message = f"the pin {name} cannot be had here: {reason}; leave it out, or run where it can"
            raise SamebitsError(message, slug="pin-impossible")


def without_implied(names: Iterable[str]) -> tuple[str, ...]:
    """Those pins but the ones that another of them fixes as well: addresses fixed fix the hash seed.

    Raises:
        SamebitsError: `pin-unknown`.
    """
    pins = [pin_named(name) for name in dict.fromkeys(names)]
    return tuple(pin.name for pin in pins if not any(_implies(other, pin) for other in pins))


def _implies(other: Pin, pin: Pin) -> bool:
    more_than_variables = pin.fixed_layout or pin.sources or pin.switches or pin.patch is not None
    return other is not pin and not more_than_variables and set(pin.environment) < set(other.environment)


def combine(names: Iterable[str], control: Control | None, environ: Mapping[str, str]) -> PinPlan:
    """What a run needs to have all of these pins, and what the user asked for besides.

    A value of the user's for a switch stays; a seed of the user's, which seeds everything, does too.

    Args:
        names: of the pins.
        control: what the user asked for.
        environ: the variables that the run would have.

    Raises:
        SamebitsError: `pin-unknown`.
    """
    pins = tuple(pin_named(name) for name in dict.fromkeys(names))
    merged = _control(pins, control)
    variables: dict[str, str] = {}
    for pin in pins:
        for name, value in pin.environment:
            wanted = _variable(name, value, {**environ, **variables})
            if wanted is not None:
                variables[name] = wanted
    if merged is not None:
        variables = {**environment_for(merged, {**environ, **variables}).variables, **variables}
    patches = () if merged is None else merged.pins
    return PinPlan(variables, any(pin.fixed_layout for pin in pins), merged, patches)


def _variable(name: str, value: str, environ: Mapping[str, str]) -> str | None:
    current = environ.get(name, "")
    if name == "PYTHONHASHSEED" and current.isdecimal():
        return None  # it is fixed already
    if name == "GLIBC_TUNABLES" and current:
        return f"{current}:{value}"  # of two settings the later one holds
    return value


def _control(pins: tuple[Pin, ...], control: Control | None) -> Control | None:
    sources = tuple(source for pin in pins for source in pin.sources)
    switches = tuple(switch for pin in pins for switch in pin.switches)
    patches = tuple(pin.name for pin in pins if pin.patch is not None)
    if not (sources or switches or patches):
        return control
    base = control or Control(all_switches=False, on_drift="ignore", workers=False)
    set_by_user = {name for name, _ in base.switches}
    added = tuple(switch for switch in switches if switch[0] not in set_by_user)
    merged = base._replace(switches=(*base.switches, *added), pins=patches)
    if not sources or base.seed is not None:
        return merged
    return merged._replace(seed=SEED, sources=sources, workers=False)
