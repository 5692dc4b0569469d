"""The switches as they stand in this process."""

from __future__ import annotations

import contextlib
import importlib
from typing import TYPE_CHECKING

from samebits.determinism.switch_handles import Variable
from samebits.determinism.switches import TABLE
from samebits.doctor.surroundings import SwitchView

if TYPE_CHECKING:
    from samebits.determinism.switch import Switch


def view_switches() -> tuple[SwitchView, ...]:
    """Every switch of the table, read now; modules that hold one are imported."""
    return tuple(map(_view, TABLE))


def _view(switch: Switch) -> SwitchView:
    handle = switch.handle
    with contextlib.suppress(Exception):  # what this build lacks is told by `missing`
        if handle.module:
            importlib.import_module(handle.module)
    missing, now = _read(switch)
    return SwitchView(
        name=switch.name,
        now=now,
        wanted=switch.value,
        fits=bool(missing) or switch.value is None or switch.keeps(now),
        problem=handle.problem(now) if now else "",
        missing=missing,
        is_variable=isinstance(handle, Variable),
        when=switch.when.value,
        promises=switch.promises,
        why=switch.why,
        source=switch.source,
    )


def _read(switch: Switch) -> tuple[str, str]:
    """Why it is missing, and its value."""
    try:
        missing = switch.handle.missing()
        return missing, "" if missing else switch.handle.read()
    except Exception as error:  # noqa: BLE001  # a setting that torch refuses to tell is not there for us
        return str(error) or type(error).__name__, ""
