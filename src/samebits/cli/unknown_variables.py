"""Variables that look as if they were samebits' and belong to no option: a misspelt one changes nothing."""

from __future__ import annotations

import difflib
import os
from typing import TYPE_CHECKING

from samebits._text.printable import printable
from samebits._text.variable_names import NO_DEFAULTS, OWN, PREFIX
from samebits.cli.defaults import option_variables
from samebits.cli.registry import COMMANDS

if TYPE_CHECKING:
    from collections.abc import Mapping


def unknown_variables(command: str, environment: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """Return a line for each variable that samebits does not know, with the nearest name that it does.

    Args:
        command: that is to run.
        environment: in which `SAMEBITS_NO_DEFAULTS` switches this off, as it does defaults.
    """
    names = {name for name in environment if name.startswith(PREFIX)} - OWN
    if not names or environment.get(NO_DEFAULTS) or names <= option_variables([command]):
        return ()  # most runs: they do not wait for the modules of other commands
    known = option_variables(COMMANDS) | OWN
    return tuple(_line(name, known) for name in sorted(names - known))


def _line(name: str, known: frozenset[str]) -> str:
    near = difflib.get_close_matches(name.upper(), sorted(known), n=1)
    meant = f" (did you mean {near[0]}?)" if near else ""
    return printable(f"unknown variable {name}{meant}: it has no effect")
