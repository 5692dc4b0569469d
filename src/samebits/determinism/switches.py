"""Every switch that influences determinism, in one table, and what a control wants of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from samebits.determinism.control import LEFT_ALONE
from samebits.determinism.switch_flags import FLAGS
from samebits.determinism.switch_handles import Variable
from samebits.determinism.switch_layout import FIXED, LAYOUT, layout_variables
from samebits.determinism.switch_variables import VARIABLES
from samebits.errors import SamebitsError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from samebits.determinism.control import Control
    from samebits.determinism.switch import Switch

TABLE: tuple[Switch, ...] = (LAYOUT, *VARIABLES, *FLAGS)
"""In the order in which switches are set and restored."""


LOOSE_LAYOUT = (
    "addresses cannot be fixed here, so that what follows their order (sets of objects, sorting by id) may "
    "differ from run to run"
)


class Wanted(NamedTuple):
    """What a control wants of one switch.

    Args:
        switch: which.
        value: what it is to be; None holds the value that it has.
        explicit: the user asked for it by name.
    """

    switch: Switch
    value: str | None
    explicit: bool


class EnvironmentPlan(NamedTuple):
    """The variables of a fresh process.

    Args:
        variables: to be set, beside those that the user has.
        warnings: one line for each value of the user's that is replaced, or that cannot be right, and one
            when addresses cannot be fixed here.
    """

    variables: dict[str, str]
    warnings: tuple[str, ...]


def switch_named(name: str) -> Switch:
    """The switch of that name.

    Raises:
        SamebitsError: there is none; `switch-unknown`.
    """
    by_name = {switch.name: switch for switch in TABLE}
    if name not in by_name:
        near = _nearest(name, list(by_name))
        hint = f"did you mean {' or '.join(near)}?" if near else "docs/switches.md lists all"
        raise SamebitsError(f"there is no switch {name!r}; {hint}", slug="switch-unknown")
    return by_name[name]


def _nearest(name: str, known: list[str]) -> list[str]:
    """Those names that contain the given one, else the one that is spelled most like it."""
    import difflib

    folded = {other.lower().replace("_", "-"): other for other in known}
    typed = name.lower().replace("_", "-")
    containing = [other for text, other in folded.items() if typed and typed in text][:3]
    close = difflib.get_close_matches(typed, folded, n=1, cutoff=0.5)
    return containing or [folded[text] for text in close]


def wanted_by(control: Control) -> tuple[Wanted, ...]:
    """What that control wants of every switch that it sets or watches, in the order of the table.

    Raises:
        SamebitsError: an unknown name (`switch-unknown`), an impossible value (`switch-value`).
    """
    asked: dict[str, str] = {}
    for name, value in control.switches:
        check_value(switch_named(name), value)
        asked[name] = value
    rows = []
    for switch in TABLE:
        chosen = asked.get(switch.name)
        if chosen == LEFT_ALONE or (chosen is None and not control.all_switches):
            continue
        rows.append(Wanted(switch, switch.value if chosen is None else chosen, chosen is not None))
    return tuple(rows)


def check_value(switch: Switch, value: str) -> None:
    """Refuse a value that the switch cannot have.

    Raises:
        SamebitsError: `switch-value`.
    """
    expected = "" if value == LEFT_ALONE else switch.handle.problem(value)
    if expected:
        message = f"the switch {switch.name!r} cannot be {value!r}; expected {expected}, or `{LEFT_ALONE}`"
        raise SamebitsError(message, slug="switch-value")


def holds_layout(control: Control | None) -> bool:
    """Whether the process is to be started with fixed addresses, where the system lets it."""
    wanted = () if control is None else wanted_by(control)
    return any(row.switch is LAYOUT and row.value == FIXED for row in wanted)


def environment_for(control: Control, environ: Mapping[str, str]) -> EnvironmentPlan:
    """The environment variables that a fresh process needs.

    A value of the user's that keeps the promise stays. Nothing is taken away.

    Args:
        control: what is asked for.
        environ: the variables that the process would have.

    Raises:
        SamebitsError: `switch-unknown`, `switch-value`.
    """
    variables: dict[str, str] = {}
    warnings: list[str] = []
    for wanted in wanted_by(control):
        handle = wanted.switch.handle
        if not isinstance(handle, Variable):
            continue
        value, warning = _variable(wanted, environ.get(handle.variable, ""))
        if value is not None:
            variables[handle.variable] = value
        if warning:
            warnings.append(warning)
    if holds_layout(control):
        variables.update(layout_variables(environ))
        obstacle = LAYOUT.handle.missing()
        if obstacle:
            warnings.append(f"{LOOSE_LAYOUT} ({obstacle}); `--leave {LAYOUT.name}` leaves this line out")
    return EnvironmentPlan(variables, tuple(warnings))


def _variable(wanted: Wanted, current: str) -> tuple[str | None, str]:
    """The value to set, None to leave it, and a warning."""
    switch, value = wanted.switch, wanted.value
    expected = switch.handle.problem(current) if current else ""
    if value is None:
        doubt = f"{switch.name}={current} cannot be right (expected {expected}); it is left as it is"
        return None, doubt if expected else ""
    if current == value:
        return None, ""
    if not current:
        return value, ""
    if wanted.explicit:
        return value, f"{switch.name}={current} is replaced by {value}, as asked for"
    if not expected and switch.keeps(current):
        return None, ""
    reason = f"expected {expected}" if expected else switch.why
    return value, f"{switch.name}={current} is replaced by {value}: {reason}"
