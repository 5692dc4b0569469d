"""The in-process parts of pins, put in place and taken away together."""

from __future__ import annotations

from samebits.determinism.pins.table import PINS
from samebits.determinism.pins.tools import PinTools


class PinnedProcess:
    """Pins of this process; children get them with the control that names them.

    Args:
        names: of the pins; those without an in-process part are passed over.
    """

    def __init__(self, names: tuple[str, ...]) -> None:
        self._patches = [pin.patch for pin in PINS if pin.name in names and pin.patch is not None]
        self._tools: PinTools | None = None

    def install(self) -> None:
        """Put them in place, with modules that are imported later as well."""
        self._tools = PinTools()
        self._tools.imports.install()
        for patch in self._patches:
            patch(self._tools)

    def remove(self) -> None:
        """Put everything back."""
        if self._tools is not None:
            self._tools.remove()
            self._tools = None
