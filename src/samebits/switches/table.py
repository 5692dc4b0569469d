"""The table of all switches: what a control wants of each, and how they are set, read back and put back."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, NamedTuple

from samebits.errors import SamebitsError
from samebits.switches._compiler import COMPILER
from samebits.switches._torch_flags import ALGORITHMS, FLAGS
from samebits.switches.startup import FIXED, HASH_SEED, LAYOUT, layout_variables
from samebits.switches.switch import LEFT_ALONE, When
from samebits.switches.variables import VARIABLES, Variable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from samebits.switches.switch import Control, Switch

TABLE: tuple[Switch, ...] = (LAYOUT, HASH_SEED, *VARIABLES, *FLAGS, *COMPILER)
"""In the order in which switches are set and restored."""
LOOSE_LAYOUT = (
    "addresses cannot be fixed here, so everything that depends on their order (sets of objects, sorting by "
    "id) may differ from run to run"
)
DETERMINISTIC = ALGORITHMS[0].name
# An action done once in a process, not a setting: `off` does not tell whether the script itself has done it.
_ONE_TIME = ("prepare-vector-math",)
WAITING, SET, HELD, KEPT = "waiting", "set", "held", "kept"
MISSING, TOO_LATE, FAILED = "missing", "too-late", "failed"


class Wanted(NamedTuple):
    """The value that a control wants one switch to have.

    Args:
        switch: the switch.
        value: the value to set; None if its present value is only watched.
        explicit: the user asked for it by name.
    """

    switch: Switch
    value: str | None
    explicit: bool


class EnvironmentPlan(NamedTuple):
    """The variables of a fresh process.

    Args:
        variables: those to set, beside the user's own.
        warnings: one line for each value of the user's that is replaced or impossible, and one when addresses
            cannot be fixed here.
    """

    variables: dict[str, str]
    warnings: tuple[str, ...]


def switch_named(name: str) -> Switch:
    """Return the switch of that name.

    Raises:
        SamebitsError: there is none; `switch-unknown`.
    """
    by_name = {switch.name: switch for switch in TABLE}
    if name not in by_name:
        near = _nearest(name, list(by_name))
        hint = f"did you mean {' or '.join(near)}?" if near else "docs/reference/switches.md lists all"
        raise SamebitsError(f"there is no switch {name!r}; {hint}", slug="switch-unknown")
    return by_name[name]


def _nearest(name: str, known: list[str]) -> list[str]:
    """Return the names that contain the given one, else the one that is spelled most like it."""
    import difflib

    folded = {other.lower().replace("_", "-"): other for other in known}
    typed = name.lower().replace("_", "-")
    containing = [other for text, other in folded.items() if len(typed) > 2 and typed in text][:3]
    close = difflib.get_close_matches(typed, folded, n=1, cutoff=0.7)
    return containing or [folded[text] for text in close]


def wanted_by(control: Control) -> tuple[Wanted, ...]:
    """Return the value that a control wants of each switch that it sets or watches, in the table's order.

    Raises:
        SamebitsError: an unknown name (`switch-unknown`), an impossible value (`switch-value`).
    """
    asked: dict[str, str] = {}
    for name, value in control.switches:
        _check_value(switch_named(name), value)
        asked[name] = value
    rows = []
    for switch in TABLE:
        chosen = asked.get(switch.name)
        if chosen == LEFT_ALONE or (chosen is None and not control.all_switches):
            continue
        rows.append(Wanted(switch, switch.value if chosen is None else chosen, chosen is not None))
    return tuple(rows)


def _check_value(switch: Switch, value: str) -> None:
    """Refuse a value that the switch cannot have.

    Raises:
        SamebitsError: `switch-value`.
    """
    expected = "" if value == LEFT_ALONE else switch.handle.problem(value)
    if expected:
        message = f"the switch {switch.name!r} cannot be {value!r}; expected {expected}, or `{LEFT_ALONE}`"
        raise SamebitsError(message, slug="switch-value")


def switch_values() -> dict[str, str]:
    """Return the value of every switch that this process has, except of libraries that are not imported."""
    has_torch = hasattr(sys.modules.get("torch"), "Tensor")  # else it is a `torch.py` of the user's own
    values = {}
    for switch in TABLE:
        handle = switch.handle
        known = not handle.module or (has_torch and handle.module in sys.modules)
        if switch.name not in _ONE_TIME and known and not handle.missing():
            values[switch.name] = handle.read()
    return values


def holds_layout(control: Control | None) -> bool:
    """Tell whether the control asks for fixed addresses; the system may still refuse them."""
    wanted = () if control is None else wanted_by(control)
    return any(row.switch is LAYOUT and row.value == FIXED for row in wanted)


def environment_for(control: Control, environ: Mapping[str, str]) -> EnvironmentPlan:
    """Return the environment variables that a fresh process needs.

    A value of the user's that keeps the promise stays. No variable is removed.

    Args:
        control: the control to plan for.
        environ: the variables that the process would have otherwise.

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
            warnings.append(f"{LOOSE_LAYOUT} ({obstacle}); `--leave {LAYOUT.name}` hides this warning")
    return EnvironmentPlan(variables, tuple(warnings))


def _variable(wanted: Wanted, current: str) -> tuple[str | None, str]:
    """Return the value to set (None leaves it) and a warning."""
    switch, value = wanted.switch, wanted.value
    expected = switch.handle.problem(current) if current else ""
    if value is None:
        doubt = f"{switch.name}={current} is not a possible value (expected {expected}); it is left as it is"
        return None, doubt if expected else ""
    if current == value:
        return None, ""
    if not current:
        return value, ""
    if wanted.explicit:
        return value, f"{switch.name}={current} is replaced by {value}, as you asked"
    if not expected and switch.keeps(current):
        return None, ""
    reason = f"expected {expected}" if expected else switch.why
    return value, f"{switch.name}={current} is replaced by {value}: {reason}"


class SwitchRow(NamedTuple):
    """The state of one switch under control.

    Args:
        name: its name.
        before: its value before control; empty for a variable that was not set.
        wanted: the value that control wants; empty when the switch is only watched.
        now: its value at this moment.
        state: `set`; `held`, watched only; `kept`, the user's value keeps the promise; `missing`, this build
            does not have it; `too-late`; `failed`; `waiting` for its module to be imported.
        why: the reason for the state, or else the purpose of the switch.
    """

    name: str
    before: str
    wanted: str
    now: str
    state: str
    why: str


class Setting:
    """One switch while control sets it and puts it back.

    Args:
        wanted: the value that control wants it to have.
    """

    def __init__(self, wanted: Wanted) -> None:
        self.switch = wanted.switch
        self.wanted = wanted.value
        self.explicit = wanted.explicit
        self.before = ""
        self.now = ""
        self.state = WAITING
        self.why = self.switch.why
        self._written = False

    @property
    def watched(self) -> bool:
        """Tell whether its value has to stay what it is now."""
        return self.state in {SET, HELD, KEPT}

    @property
    def replaced(self) -> bool:
        """Tell whether control replaced the user's value although nobody asked for this switch by name."""
        chosen = self.before not in {"", self.switch.default}
        return self.state == SET and chosen and self.now != self.before and not self.explicit

    def begin(self) -> None:
        """Read it, before any switch is set."""
        missing = self.switch.handle.missing()
        if missing:
            self.state, self.why = MISSING, missing
        else:
            self.before = self.now = self.switch.handle.read()

    def apply(self) -> None:
        """Set it, if it has to be set and still can be."""
        if self.state == MISSING:
            return
        if self.wanted is None:
            self.state = HELD
        elif self.before == self.wanted:
            self.state = SET
        elif not self.explicit and self._keeps():
            self.state = KEPT
        else:
            self._write(self.wanted)

    def settle(self) -> None:
        """Read it back after all were set, because setting one may change another."""
        if self.state in {WAITING, MISSING}:
            return
        self.now = self.switch.handle.read()
        if self.state == SET and self.now != self.wanted:
            self.state, self.why = FAILED, f"it was set to {self.wanted} and reads back as {self.now}"

    def put_back(self) -> str:
        """Give it the value from before control; a watched switch keeps the script's choice.

        Returns:
            An error message; empty on success.
        """
        moved = self.state == HELD and self.now != self.before  # by setting another switch
        wanted = moved or self._written or self.state in {SET, KEPT}
        self.state = WAITING
        try:
            if wanted:
                self.switch.handle.restore(self.before)
        except ValueError as error:
            name = self.switch.name
            return f"{name} could not be put back to {self.before} and stays {self.now}: {error}"
        return ""

    def set_again(self) -> None:
        """Set it, after a drift, to the value that it had when it was settled."""
        self.switch.handle.restore(self.now)

    def row(self) -> SwitchRow:
        """Return its result as of this moment."""
        known = self.state not in {WAITING, MISSING}
        now = self.switch.handle.read() if known else ""
        return SwitchRow(self.switch.name, self.before, self.wanted or "", now, self.state, self.why)

    def _keeps(self) -> bool:
        handle, before = self.switch.handle, self.before
        may = bool(before) and (self.switch.accepts is not None or before == self.switch.value)
        return may and not handle.problem(before) and self.switch.keeps(before)

    def _write(self, value: str) -> None:
        late = _too_late(self.switch.when)
        if late:
            self.state, self.why = TOO_LATE, late
            return
        self._written = True
        try:
            self.switch.handle.write(value)
        except ValueError as error:
            self.state, self.why = FAILED, str(error)
        else:
            self.state = SET


def _too_late(when: When) -> str:
    """Return why it is too late for switches of that moment; empty when they can still be set."""
    torch: Any = sys.modules.get("torch")
    if not hasattr(torch, "Tensor"):  # a `torch.py` of the user's own
        torch = None
    if when is When.PROCESS:
        return "the interpreter has started"
    if when is When.IMPORT and torch is not None:
        return "torch has been imported"
    if torch is not None and when is When.CUDA and torch.cuda.is_initialized():
        return "CUDA is in use"
    if torch is not None and when is When.GROUP:
        distributed = torch.distributed
        if distributed.is_available() and distributed.is_initialized():
            return "the process group exists"
    return ""
