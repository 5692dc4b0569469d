"""From a unit to functions on a device: code that is shipped with the release, else what NVRTC makes here."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from samebits._cuda.driver import DriverError, Module
from samebits._cuda.kept_code import code_of
from samebits._cuda.shipped_code import shipped_code

if TYPE_CHECKING:
    from samebits._cuda.units import Unit


def load_unit(unit: Unit, capability: tuple[int, int], cuda: str) -> Module:
    """Load a unit into the current context, where it stays.

    What the driver refuses is passed over: one of another release may not know the format of shipped code.

    Args:
        unit: what to load.
        capability: of the device of the context, such as (9, 0).
        cuda: the release that torch was built with, such as `13.0`.

    Raises:
        CompileError: NVRTC was needed and is not there, or it does not know the device.
        DriverError: there is no driver, or it refused what was made here as well.
    """
    program = unit.program()
    for code in shipped_code(program.key, capability):
        with suppress(DriverError):
            return Module(code)
    return Module(code_of(program, capability, cuda))
